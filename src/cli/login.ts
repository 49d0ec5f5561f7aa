/** Runs `trivet login`: gets a token for a running service, by the device flow (RFC 8628) or from standard input. */
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { type Login, readLogins, withLogin, withoutLogin, writeLogins } from '../command-line/logins.ts';
import { print, printJson, remark } from '../command-line/output.ts';
import { CLIENT_ID, postForm, type TokenAnswer, toLogin } from '../command-line/refresh-login.ts';
import { readServiceUrl } from '../command-line/service-url.ts';
import { readUserEnvironment } from '../config/config.ts';
import { Failure, isFailure } from '../errors.ts';
import { readJsonAnswer, refuseUnreachable } from '../operations/call-service.ts';
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
  const logins = await readLogins(configFolder);
  const signedIn = withToken ? { token: await readToken() } : await askInBrowser(url, scope);
  // The person confirms a code once: what fails afterwards must not lose its token.
  if (!withToken) await writeLogins(configFolder, withLogin(logins, url, signedIn));
  const complete = { ...signedIn, user: await readUser(url, signedIn.token) };
  await writeLogins(configFolder, withLogin(logins, url, complete));
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
  readonly error?: string;
  readonly error_description?: string;
}

/** The person opens a page on any device and confirms the code that stands here. */
async function askInBrowser(url: string, scope: string): Promise<Login> {
  const endpoints = await readEndpoints(url);
  const device: DeviceAnswer = await postForm(endpoints.device, { client_id: CLIENT_ID, scope });
  if (device.device_code === undefined)
    throw new Failure(
      'invalid',
      `Cannot sign in to ${url}: ${device.error_description ?? device.error ?? 'no code came'}`,
    );
  remark(`Open ${device.verification_uri_complete ?? device.verification_uri}`);
  remark(`and confirm the code ${device.user_code}`);
  return await pollForToken(endpoints.token, device.device_code, device.interval ?? 5);
}

async function readEndpoints(url: string): Promise<{ readonly device: string; readonly token: string }> {
  const found = await readMetadata(url);
  const { device_authorization_endpoint: device, token_endpoint: token } = found as Record<string, string | undefined>;
  if (device === undefined || token === undefined)
    throw new Failure('invalid', `Cannot sign in to ${url}: it has no device flow; use --with-token`);
  return { device: readServiceUrl(device), token: readServiceUrl(token) };
}

async function readMetadata(url: string): Promise<unknown> {
  try {
    const response = await fetch(`${url}/.well-known/oauth-authorization-server`, { redirect: 'error' });
    if (response.ok) return await readJsonAnswer(url, response);
  } catch (error) {
    throw isFailure(error) ? error : refuseUnreachable(url, error);
  }
  throw new Failure('invalid', `Cannot sign in to ${url}: it is not a Trivet service`);
}

/** §3.5: not sooner than it says, and 5 seconds later each time when asked to slow down. */
async function pollForToken(url: string, deviceCode: string, intervalSeconds: number): Promise<Login> {
  const fields = {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: deviceCode,
    client_id: CLIENT_ID,
  };
  for (let waitSeconds = intervalSeconds; ; ) {
    await sleep(waitSeconds * 1000);
    const answer: TokenAnswer = await postForm(url, fields);
    if (answer.access_token !== undefined) return toLogin(answer, realWorld.nowMs());
    if (answer.error === 'slow_down') waitSeconds += 5;
    else if (answer.error !== 'authorization_pending')
      throw new Failure('forbidden', `Cannot sign in: ${answer.error_description ?? answer.error ?? 'no token came'}`);
  }
}

/** Undefined for a token that may not read its user. Throws for a token that is not valid there. */
async function readUser(url: string, token: string): Promise<string | undefined> {
  const response = await fetch(`${url}/api/v5/user`, {
    headers: { Authorization: `Bearer ${token}` },
    redirect: 'error',
  }).catch((error: unknown) => {
    throw refuseUnreachable(url, error);
  });
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
  await writeLogins(configFolder, withoutLogin(logins, url));
  const isRevoked = known.refreshToken !== undefined && (await revoke(url, known.refreshToken));
  if (json) return printJson({ url, revoked: isRevoked });
  print(`Signed out of ${url}`);
  if (!isRevoked)
    remark(
      known.refreshToken === undefined
        ? 'The token itself goes on working: delete it with trivet token revoke, or on the page Personal access tokens'
        : 'The service could not be reached, so the token goes on working until it ends',
    );
}

/** Revokes a token. With a refresh token its access tokens end too. */
async function revoke(url: string, token: string): Promise<boolean> {
  return await postForm(`${url}/oauth/revoke`, { token, client_id: CLIENT_ID }).then(
    ({ error }) => error === undefined,
    () => false,
  );
}
