/** The OAuth clients that Debian ships, unchanged, against the running program, with a person in a real browser between them. */
import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, suite, type TestContext, test } from 'node:test';
import { type OAuthJourney, startOAuthJourney } from '../support/authorization/oauth-journey.ts';
import { listenForCallback } from '../support/network/callback.ts';
import { findReasonToSkipPages } from '../support/pages/browser.ts';

/** Debian's packages: python3-authlib, python3-requests-oauthlib. Another python3 in the path would not have them. */
const PYTHON = '/usr/bin/python3';
const HELPER = '/usr/bin/git-credential-oauth';

const missing = [
  ['python3-authlib', isThere(PYTHON, '-c', 'import authlib, requests')],
  ['python3-requests-oauthlib', isThere(PYTHON, '-c', 'import requests_oauthlib')],
  ['git-credential-oauth', isThere(HELPER)],
].flatMap(([name, isInstalled]) => (isInstalled ? [] : [name]));

interface Report {
  readonly logins: string[];
  readonly access_tokens: string[];
  /** The credential that git asked the helper to store after a refresh. */
  readonly stored: string[];
}

interface Filled {
  readonly url: URL;
  readonly credential: ReadonlyMap<string, string>;
}

suite('OAuth clients of Debian', { skip: skipReason() }, () => {
  let journey: OAuthJourney;

  before(async () => {
    assert.deepEqual(missing, []);
    journey = await startOAuthJourney();
  });

  after(async () => {
    await journey?.[Symbol.asyncDispose]();
  });

  /** Runs a client that asks for an approval in the middle. */
  async function runPython<T>(script: string, settings: object): Promise<T> {
    const child = spawn(PYTHON, [`test/journeys/${script}`], { env: { PATH: process.env.PATH ?? '' } });
    const ended = collectEnd(child);
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const common = { base_url: journey.program.httpUrl, redirect_uri: journey.callback.url };
    child.stdin.write(`${JSON.stringify({ ...common, ...settings })}\n`);
    const { value: url } = await lines.next();
    if (url !== undefined) child.stdin.end(`${(await journey.approveAndReturn(url)).href}\n`);
    const { value: report } = await lines.next();
    const { code, errors } = await ended;
    assert.equal(code, 0, errors);
    return JSON.parse(report ?? '') as T;
  }

  function checkReport({ logins, access_tokens, stored }: Report): void {
    assert.deepEqual(logins, ['ada', 'ada', 'ada']);
    assert.equal(new Set(access_tokens).size, 3);
    assert.deepEqual(stored.at(-1), access_tokens[2]);
  }

  for (const method of ['client_secret_basic', 'client_secret_post']) {
    test(`Authlib by ${method} uses PKCE, reads the identity token, refreshes when asked and when expired, introspects and revokes`, async () => {
      const settings = { ...(await journey.register()), method, code_verifier: createVerifier() };
      const report = await runPython<
        Report & { sub: string; userinfo_sub: string; active: boolean; revoked: number; after_revocation: number }
      >('authlib-client.py', settings);
      checkReport(report);
      assert.equal(report.sub, report.userinfo_sub);
      assert.deepEqual([report.active, report.revoked, report.after_revocation], [true, 200, 401]);
    });
  }

  test('requests-oauthlib by HTTP Basic exchanges, and refreshes with the client and, once expired, without', async () => {
    const report = await runPython<Report & { scope: string[] }>(
      'requests-oauthlib-client.py',
      await journey.register(),
    );
    checkReport(report);
    assert.deepEqual(report.scope, ['all_user', 'all_hook']);
  });

  test('requests-oauthlib without a secret uses PKCE, and Basic with an empty password', async () => {
    const { client_id } = await journey.register('--public');
    const code_verifier = createVerifier();
    const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
    checkReport(await runPython<Report>('requests-oauthlib-client.py', { client_id, code_verifier, code_challenge }));
  });

  test('git asks git-credential-oauth, and gets a password that works', async (t) => {
    const asked = await fillCredential(t, ['git', 'credential', 'fill']);
    assert.match(asked.url.searchParams.get('redirect_uri') ?? '', /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(asked.url.searchParams.get('code_challenge_method'), 'S256');
    assert.equal(asked.credential.get('username'), 'oauth2');
    await checkToken(asked.credential.get('password'));
  });

  test('git-credential-oauth renews a token without a browser', { skip: refreshSkipReason() }, async (t) => {
    const { credential } = await fillCredential(t, [HELPER, 'get']);
    const kept = `oauth_refresh_token=${credential.get('oauth_refresh_token')}\n`;
    const asking = startAsking(t, [HELPER, 'get'], { openedUrl: 'http://missing.invalid', kept });
    const renewed = parsePairs(await asking);
    assert.notEqual(renewed.get('password'), credential.get('password'));
    assert.notEqual(renewed.get('oauth_refresh_token'), credential.get('oauth_refresh_token'));
    await checkToken(renewed.get('password'));
  });

  /** Runs a command that needs a credential, and approves what it opens in the browser. */
  async function fillCredential(t: TestContext, argv: readonly string[]): Promise<Filled> {
    await using opened = await listenForCallback();
    const asking = startAsking(t, argv, { openedUrl: opened.url });
    const request = await Promise.race([opened.nextUrl(), asking.then(refuseEarlyEnd)]);
    const url = new URL(request.searchParams.get('url') ?? '');
    await journey.approve(url.href);
    return { url, credential: parsePairs(await asking) };
  }

  /** What the command printed, once it ended well. */
  async function startAsking(
    t: TestContext,
    [command = '', ...argv]: readonly string[],
    { openedUrl, kept = '' }: { readonly openedUrl: string; readonly kept?: string },
  ): Promise<string> {
    const env = prepareGit(createHome(t), journey.program.httpUrl, openedUrl);
    // A separate process group: if the test fails in between, the helper that git started waits for its answer for ever.
    const child = spawn(command, argv, { env, detached: true });
    t.after(() => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid);
    });
    const ended = collectEnd(child);
    const output = collect(child.stdout);
    child.stdin.end(`protocol=http\nhost=${new URL(journey.program.httpUrl).host}\n${kept}\n`);
    const { code, errors } = await ended;
    assert.equal(code, 0, errors);
    return output();
  }

  async function checkToken(token: string | undefined): Promise<void> {
    const user = await fetch(`${journey.program.httpUrl}/api/v5/user`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    assert.equal(((await user.json()) as { login?: string }).login, 'ada');
  }
});

/**
 * A home whose git is configured as the documentation says, and a desktop whose browser reports to the test what it was
 * asked to open. The helper of Debian 12 takes paths of the git host, not URLs.
 */
function prepareGit(home: string, base: string, openedUrl: string): NodeJS.ProcessEnv {
  const bin = join(home, 'bin');
  mkdirSync(bin);
  const script = `#!${process.execPath}\nfetch('${openedUrl}?url=' + encodeURIComponent(process.argv[2]));\n`;
  for (const name of ['open', 'xdg-open']) writeFileSync(join(bin, name), script, { mode: 0o755 });
  const env = { HOME: home, PATH: `${bin}:/usr/bin:/bin`, GIT_TERMINAL_PROMPT: '0', GIT_CONFIG_NOSYSTEM: '1' };
  for (const [name, value] of [
    ['credential.helper', 'oauth'],
    [`credential.${base}.oauthClientId`, 'git-credential-oauth'],
    [`credential.${base}.oauthAuthURL`, '/oauth/authorize'],
    [`credential.${base}.oauthTokenURL`, '/oauth/token'],
    [`credential.${base}.oauthScopes`, 'all_user all_repository'],
  ] as const)
    execFileSync('git', ['config', '--global', name, value], { env });
  return env;
}

function refuseEarlyEnd(output: string): never {
  throw new Error(`The command asked for no approval, and printed: ${output}`);
}

function createHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'trivet-git-'));
  t.after(() => rmSync(home, { recursive: true }));
  return home;
}

function createVerifier(): string {
  return randomBytes(32).toString('base64url');
}

function parsePairs(text: string): Map<string, string> {
  const pairs = text
    .trim()
    .split('\n')
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
  return new Map(pairs);
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

async function collectEnd(child: ChildProcessWithoutNullStreams): Promise<{ code: number | null; errors: string }> {
  const errors = collect(child.stderr);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, errors: errors() };
}

function isThere(command: string, ...argv: string[]): boolean {
  const { error, status } = spawnSync(command, argv);
  return error === undefined && status !== 1;
}

/** Without the packages it is skipped on a developer's machine and fails where the gate runs. */
function skipReason(): string | false {
  if (process.env.CI === 'true') return false;
  return missing.length === 0 ? findReasonToSkipPages() : `${missing.join(', ')}: not installed`;
}

/** It keeps refresh tokens since 0.7; Debian 12 has 0.4. */
function refreshSkipReason(): string | false {
  if (missing.length > 0 || readFileSync(HELPER).includes('oauth_refresh_token')) return false;
  return 'this git-credential-oauth is older than 0.7 and keeps no refresh token';
}
