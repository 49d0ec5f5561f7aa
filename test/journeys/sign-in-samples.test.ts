/** The programs of docs/start/sign-in.md sign a person in, in a real browser, and renew their tokens. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type OAuthJourney, startOAuthJourney } from '../support/authorization/oauth-journey.ts';
import { findFreePort } from '../support/basics/free-port.ts';
import { findReasonToSkipPages } from '../support/pages/browser.ts';

const SAMPLES: readonly (readonly [language: string, file: string, command: string])[] = [
  ['js', 'app.mjs', process.execPath],
  ['python', 'app.py', '/usr/bin/python3'],
];

function readSample(language: string): string {
  const page = readFileSync('docs/start/sign-in.md', 'utf8');
  const [, text] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  assert.ok(text, `the page shows no ${language}`);
  return text;
}

async function waitUntilUp(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(url, { redirect: 'manual' }).catch(() => undefined);
    if (answer !== undefined) return;
  }
}

describe('with a browser', { skip: findReasonToSkipPages() }, () => {
  let journey: OAuthJourney;
  before(async () => {
    journey = await startOAuthJourney();
  });
  after(() => journey[Symbol.asyncDispose]());

  for (const [language, file, command] of SAMPLES)
    test(`the ${language} program signs in, calls the API and renews its tokens`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'trivet-sample-'));
      writeFileSync(join(folder, file), readSample(language));
      const port = String(await findFreePort());
      const url = `http://127.0.0.1:${port}`;
      const { client_id, client_secret } = await journey.register('--redirect-uri', `${url}/callback`);
      const app = spawn(command, [file], {
        cwd: folder,
        env: {
          ...process.env,
          BASE_URL: journey.program.httpUrl,
          CLIENT_ID: client_id,
          CLIENT_SECRET: client_secret,
          PORT: port,
        },
        stdio: ['ignore', 'ignore', 'ignore'],
      });
      t.after(async () => {
        app.kill('SIGKILL');
        await once(app, 'close');
        rmSync(folder, { recursive: true });
      });
      await waitUntilUp(url);
      const { page } = journey;
      await journey.approve(`${url}/`);
      await page.waitForURL(`${url}/`);
      assert.equal(await page.textContent('body'), 'Signed in as ada');
      await page.goto(`${url}/renew`);
      assert.equal(await page.textContent('body'), 'Signed in as ada');
      // Each renewal used up the refresh token before it: a second one works with the new token alone.
      await page.goto(`${url}/renew`);
      assert.equal(await page.textContent('body'), 'Signed in as ada');

      const foreign = await fetch(`${url}/callback?code=made-up&state=made-up`, { redirect: 'manual' });
      assert.deepEqual([foreign.status, await foreign.text()], [400, 'This sign-in began in another browser']);
      const begun = await fetch(`${url}/sign-in`, { redirect: 'manual' });
      const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state') ?? '';
      const cookie = begun.headers.getSetCookie()[0]?.split(';')[0] ?? '';
      const denied = await fetch(`${url}/callback?error=access_denied&state=${state}`, { headers: { cookie } });
      assert.equal(await denied.text(), 'You are not signed in: access_denied');
    });
});
