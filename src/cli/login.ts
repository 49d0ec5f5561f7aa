/** Runs `trivet login`: gets a token for a running service, by the device flow (RFC 8628) or from standard input. */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { askService } from '../command-line/ask-service.ts';
import { findEndpoints } from '../command-line/find-endpoints.ts';
import { checkLogins, type Login, readLogins, updateLogins, withLogin, withoutLogin } from '../command-line/logins.ts';
import { print, printJson, remark } from '../command-line/output.ts';
import { CLIENT_ID, postForm, type TokenAnswer, toLogin } from '../command-line/refresh-login.ts';
import { readServiceUrl } from '../command-line/service-url.ts';
import { readUserEnvironment } from '../config/config.ts';
import { Failure, isFailure } from '../errors.ts';
import { readJsonAnswer } from '../operations/call-service.ts';
import { realWorld } from '../world.ts';

/** The scopes to administer the service, and to publish events of any repository. */
const DEFAULT_SCOPE = 'all_user admin events:write';

interface LoginOptions {
  readonly withToken?: true;
  readonly scope: string;
  readonly json?: true;
}

export function createLoginCommand(): Command {
  return new Command('login')
    .description('Sign in to a running service; commands then use it where there is no store')
    .argument('<url>', 'its address; over https, or http on this machine')
    .option('--with-token', 'read a personal token from standard input instead of asking in a browser')
    .option(
      '--scope <names>',
      'what to ask for, with spaces between; the person ticks on the page what to allow',
      DEFAULT_SCOPE,
    )
    .option('--json', 'print JSON')
    .action(login);
}

export function createLogoutCommand(): Command {
  return new Command('logout')
    .description('Revoke and forget the login at a service')
    .argument('[url]', 'its address; that of the last login unless given')
    .option('--json', 'print JSON')
    .action(logout);
}

async function login(given: string, { withToken, scope, json }: LoginOptions): Promise<void> {
  const url = readServiceUrl(given);
  const { configFolder } = readUserEnvironment();
  // Checked first, so that a person confirms a code or types a token only for a login that can be stored.
  await checkLogins(configFolder);
  const signedIn = withToken ? { token: await readToken() } : await askInBrowser(url, scope);
  // The person confirms a code once: a later failure must not lose its token.
  if (!withToken) await updateLogins(configFolder, (logins) => withLogin(logins, url, signedIn));
  const complete = { ...signedIn, user: await readUser(url, signedIn.token) };
  await updateLogins(configFolder, (logins) => withLogin(logins, url, complete));
  if (json) return printJson({ url, user: complete.user ?? null, scope: complete.scope ?? null });
  const who = complete.user === undefined ? '' : ` as ${complete.user}`;
  print(`Signed in to ${url}${who}${complete.scope === undefined ? '' : ` (${complete.scope})`}`);
  if (!withToken && scope.split(' ').includes('admin') && !complete.scope?.split(' ').includes('admin'))
    remark('Without the scope admin: commands that administer the service will be refused');
}

async function readToken(): Promise<string> {
  const token = (await text(process.stdin)).trim();
  if (/^\S{1,500}$/.test(token)) return token;
  throw new Failure('invalid', 'Cannot sign in: --with-token reads a token from standard input, which has no token');
}

interface DeviceAnswer {
  readonly device_code?: string;
  readonly user_code?: string;
  readonly verification_uri?: string;
  readonly verification_uri_complete?: string;
  readonly interval?: number;
  readonly expires_in?: number;
  readonly error?: string;
  readonly error_description?: string;
}

/** The person opens a page on any device and confirms the code that is printed here. */
async function askInBrowser(url: string, scope: string): Promise<Login> {
  const endpoints = await findEndpoints(url);
  if (endpoints === undefined) throw new Failure('invalid', `Cannot sign in to ${url}: it is not a Trivet service`);
  if (endpoints.device === undefined)
    throw new Failure('invalid', `Cannot sign in to ${url}: it has no device flow; use --with-token`);
  const device: DeviceAnswer = await postForm(endpoints.device, { client_id: CLIENT_ID, scope });
  if (device.device_code === undefined)
    throw new Failure(
      'invalid',
      `Cannot sign in to ${url}: ${device.error_description ?? device.error ?? 'no code came'}`,
    );
  remark(`Open ${device.verification_uri_complete ?? device.verification_uri}`);
  remark(`and confirm the code ${device.user_code}`);
  return await pollForToken(endpoints.token, device.device_code, device);
}

/** The longest delay between polls after failures. */
const LONGEST_WAIT_SECONDS = 60;

/**
 * Polls as RFC 8628 §3.5 requires: waits the interval of the service before each poll, and 5 seconds longer after `slow_down`. After a
 * transient failure it doubles the wait, until the code expires.
 */
async function pollForToken(
  url: string,
  deviceCode: string,
  { interval: intervalSeconds = 5, expires_in: lifetimeSeconds = 900 }: DeviceAnswer,
): Promise<Login> {
  const fields = {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: deviceCode,
    client_id: CLIENT_ID,
  };
  const endMs = performance.now() + lifetimeSeconds * 1000;
  let interval = intervalSeconds;
  for (let waitSeconds = interval; ; ) {
    await sleep(waitSeconds * 1000);
    const answer = await poll(url, fields);
    if (isFailure(answer)) {
      if (performance.now() >= endMs) throw answer;
      waitSeconds = Math.max(interval, Math.min(Math.max(1, 2 * waitSeconds), LONGEST_WAIT_SECONDS));
      remark(`${answer.message}\nThe next attempt is in ${waitSeconds} s`);
      continue;
    }
    if (answer.access_token !== undefined) return toLogin(answer, realWorld.nowMs());
    if (answer.error === 'slow_down') interval += 5;
    else if (answer.error !== 'authorization_pending')
      throw new Failure('forbidden', `Cannot sign in: ${answer.error_description ?? answer.error ?? 'no token came'}`);
    waitSeconds = interval;
  }
}

/** Returns a transient failure: the service answered the earlier requests, so the address is correct. */
async function poll(url: string, fields: Readonly<Record<string, string>>): Promise<TokenAnswer | Failure> {
  return await postForm(url, fields).catch((error: unknown) => {
    if (isFailure(error) && error.code === 'unavailable') return error;
    throw error;
  });
}

/** Returns undefined for a token that may not read its user. Throws for an invalid token. */
async function readUser(url: string, token: string): Promise<string | undefined> {
  const response = await askService(`${url}/api/v5/user`, { headers: { Authorization: `Bearer ${token}` } });
  if (response.status === 401) throw new Failure('unauthenticated', `${url} refused the token`);
  if (!response.ok) return undefined;
  return ((await readJsonAnswer(url, response)) as { readonly login?: string }).login;
}

async function logout(given: string | undefined, { json }: { readonly json?: true }): Promise<void> {
  const { configFolder } = readUserEnvironment();
  const logins = await readLogins(configFolder);
  const url = given === undefined ? logins.preferred : readServiceUrl(given);
  const known = url === undefined ? undefined : logins.hosts[url];
  if (url === undefined || known === undefined)
    throw new Failure('not_found', `Cannot sign out: there is no login${url === undefined ? '' : ` for ${url}`}`);
  // Revoked first: a command that is killed in between leaves a login with an invalid token, not a valid token without a login.
  const isRevoked = known.refreshToken !== undefined && (await revoke(url, known.refreshToken));
  await updateLogins(configFolder, (stored) => withoutLogin(stored, url));
  if (json) return printJson({ url, revoked: isRevoked });
  print(`Signed out of ${url}`);
  if (!isRevoked)
    remark(
      known.refreshToken === undefined
        ? 'The token itself goes on working: delete it with trivet token revoke, or on the page Personal access tokens'
        : 'The service could not revoke the token, so it goes on working until it ends: revoke Trivet command line on the page Authorized applications',
    );
}

/** Revokes a token. With a refresh token its access tokens end too. */
async function revoke(url: string, token: string): Promise<boolean> {
  try {
    const endpoints = await findEndpoints(url);
    if (endpoints === undefined) return false;
    const { error } = await postForm(endpoints.revocation, { token, client_id: CLIENT_ID });
    return error === undefined;
  } catch {
    return false;
  }
}
