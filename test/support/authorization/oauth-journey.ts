/** Starts the parts that the journey of every OAuth client needs: the program, an account, a real browser and a callback address. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { type Callback, listenForCallback } from '../network/callback.ts';
import { launchBrowser, openPage } from '../pages/browser.ts';
import { runTrivet } from '../programs/run-trivet.ts';
import { createDataDir, type Program, startProgram } from '../programs/start-program.ts';

const PASSWORD = 'correct horse battery staple';

export interface ClientCredentials {
  readonly client_id: string;
  readonly client_secret: string;
}

export interface OAuthJourney {
  readonly program: Program;
  readonly callback: Callback;
  readonly page: Page;
  /** Runs `trivet app create` with these options; the redirect URI is `callback` unless they name one. */
  register(...options: string[]): Promise<ClientCredentials>;
  /** Acts as the person: signs in and presses Allow if asked to, and ends at the callback of the client. */
  approve(url: string): Promise<void>;
  approveAndReturn(url: string): Promise<URL>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The account's login is `ada`. */
export async function startOAuthJourney(): Promise<OAuthJourney> {
  const dataDir = createDataDir();
  await createAda(dataDir);
  await using stack = new AsyncDisposableStack();
  const program = stack.use(await startProgram({}, dataDir));
  const browser = stack.adopt(await launchBrowser(), (opened) => opened.close());
  const callback = stack.use(await listenForCallback());
  const page = await openPage(browser);
  const kept = stack.move();
  return {
    program,
    callback,
    page,
    register: (...options) => registerApplication(dataDir, callback.url, options),
    approve: (url) => approve(page, url),
    approveAndReturn: async (url) => {
      const [answer] = await Promise.all([callback.nextUrl(), approve(page, url)]);
      return answer;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function createAda(dataDir: string): Promise<void> {
  const argv = ['user', 'create', '--login', 'ada', '--name', 'Ada', '--email', 'ada@example.com', '--password-stdin'];
  const created = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir }, input: `${PASSWORD}\n` });
  assert.equal(created.code, 0, created.stderr);
}

async function registerApplication(
  dataDir: string,
  callbackUrl: string,
  options: readonly string[],
): Promise<ClientCredentials> {
  const redirect = options.includes('--redirect-uri') ? [] : ['--redirect-uri', callbackUrl];
  const argv = ['app', 'create', '--name', 'Journey', '--json', ...redirect, ...options];
  const run = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir } });
  assert.equal(run.code, 0, run.stderr);
  return JSON.parse(run.stdout) as ClientCredentials;
}

async function approve(page: Page, url: string): Promise<void> {
  await page.goto(url);
  if (await page.locator('input[name="password"]').count()) {
    await page.fill('input[name="login"]', 'ada');
    await page.fill('input[name="password"]', PASSWORD);
    await page.locator('form:has(input[name="password"]) button').last().click();
  }
  const allow = page.locator('button[name="decision"][value="allow"]');
  if (await allow.count()) await allow.click();
}
