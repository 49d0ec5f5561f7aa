/** `/docs/api` in a real browser: no request leaves the host, the policy of pages holds, and nothing needs a script. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type App, startApp } from '../../src/app.ts';
import { parseConfig } from '../../src/config/config.ts';
import { findReasonToSkipPages } from '../support/pages/browser.ts';
import { useBrowser } from '../support/pages/browser-pages.ts';
import { findPageFlaws } from '../support/pages/page-flaws.ts';

interface OpenApi {
  readonly webhooks: Readonly<
    Record<string, { readonly post: { readonly parameters: readonly { readonly description: string }[] } }>
  >;
}

interface Watched {
  readonly foreign: string[];
  readonly complaints: string[];
}

function watch(page: Page, host: string): Watched {
  const watched: Watched = { foreign: [], complaints: [] };
  page.on('request', (request) => {
    if (new URL(request.url()).host !== host) watched.foreign.push(request.url());
  });
  page.on('console', (message) => watched.complaints.push(message.text()));
  page.on('requestfailed', (request) => watched.complaints.push(`failed: ${request.url()}`));
  page.on('response', (response) => {
    if (response.status() >= 400) watched.complaints.push(`${response.status()}: ${response.url()}`);
  });
  return watched;
}

describe('/docs/api', { skip: findReasonToSkipPages() }, () => {
  let app: App;
  const browser = useBrowser();
  const folder = mkdtempSync(join(tmpdir(), 'trivet-reference-'));
  before(async () => {
    app = await startApp(parseConfig({ HTTP_PORT: '0', GRPC_PORT: '0', LOG_LEVEL: 'silent', TRIVET_DATA_DIR: folder }));
  });
  after(async () => {
    await app[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const width of [1440, 375])
    for (const path of ['/docs/api', '/docs/api/events'])
      for (const [how, javaScriptEnabled] of [
        ['with', true],
        ['without', false],
      ] as const)
        test(`${path} at ${width} px stays on the host, within its policy, ${how} script`, async (t) => {
          const page = await browser.openPage(t, { viewport: { width, height: 900 }, javaScriptEnabled });
          const { foreign, complaints } = watch(page, new URL(app.httpUrl).host);
          await page.goto(app.httpUrl + path);
          await page.locator('details.operation > summary').first().click();
          await page.locator('details.operation[open] h3').first().waitFor();
          if (process.env.SCREENSHOTS)
            await page.screenshot({ path: `${process.env.SCREENSHOTS}/${path.replaceAll('/', '-')}-${width}.png` });
          assert.deepEqual({ foreign, complaints }, { foreign: [], complaints: [] });
        });

  test('/docs/api/events copies a program', async (t) => {
    const page = await browser.openPage(t, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.goto(`${app.httpUrl}/docs/api/events`);
    const program = page.locator('details.program').first();
    await program.locator('summary').click();
    await program.getByRole('button', { name: 'Copy' }).click();
    await program.getByRole('button', { name: 'Copied' }).waitFor();
    assert.equal(
      await page.evaluate('navigator.clipboard.readText()'),
      (await program.locator('code').innerText()).trim(),
    );
  });

  test('lists every operation and delivery of the document', async () => {
    const document = (await (await fetch(`${app.httpUrl}/openapi.json`)).json()) as Record<string, object>;
    for (const [path, items] of [
      ['/docs/api', document.paths],
      ['/docs/api/events', document.webhooks],
    ] as const) {
      const text = await (await fetch(app.httpUrl + path)).text();
      const names = Object.values(items ?? {}).flatMap((methods) =>
        Object.values(methods as object).flatMap(({ operationId }) => operationId ?? []),
      );
      assert.ok(names.length >= 20);
      for (const name of names) assert.ok(text.includes(`id="${name}"`), name);
    }
  });

  test('a field is shown with its range, its length, its format and its default', async () => {
    const body = await (await fetch(`${app.httpUrl}/docs/api`)).text();
    const entryOf = (operation: string) => body.slice(body.indexOf(`id="${operation}"`)).split('</details>')[0]!;
    const textOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
    const hooks = textOf(entryOf('listHooks'));
    assert.match(hooks, /per_page query, integer, 1 to 100, default 20/);
    assert.match(hooks, /page query, integer, 1 to 1,000,000, default 1/);
    assert.match(textOf(entryOf('listDeliveries')), /since query, string, date-time/);
    const repository = textOf(body.slice(body.indexOf('id="schema-NewRepository"')).split('</details>')[0]!);
    assert.match(repository, / name string, 1 to 255 characters/);
    assert.match(repository, /private boolean, default false/);
    assert.match(
      textOf(body.slice(body.indexOf('id="schema-PredictRequest"'))),
      /inputs array of PredictInput , at most 4,096 items/,
    );
    assert.match(
      textOf(body.slice(body.indexOf('id="schema-AuditEvent"'))),
      /details object with values of string or number or boolean/,
    );
  });

  test('an example of a form is shown as it is sent, and of the token endpoint with the fields of one grant', async () => {
    const body = await (await fetch(`${app.httpUrl}/docs/api`)).text();
    const operation = body.slice(body.indexOf('id="issueToken"')).split('</pre>')[0]!;
    const [, form = ''] = /<code>(grant_type=[^<]*)<\/code>/.exec(operation) ?? [];
    const fields = [...new URLSearchParams(form.replaceAll('&amp;', '&')).keys()];
    assert.deepEqual(fields, ['grant_type', 'code', 'redirect_uri', 'code_verifier', 'client_id']);
  });

  test('/docs/api/events shows the programs that verify a delivery, and what each header is', async () => {
    const body = await (await fetch(`${app.httpUrl}/docs/api/events`)).text();
    const guide = readFileSync('docs/how-to/verify-deliveries.md', 'utf8');
    const shown = body
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>');
    const programs = ['js', 'python', 'go', 'php', 'ruby', 'sh'].map(
      (language) => new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(guide)?.[1] ?? '',
    );
    for (const program of programs)
      assert.ok(program !== '' && shown.replaceAll('&amp;', '&').includes(program), program);
    assert.ok(!body.includes('no token'), 'the sender proves itself by the headers');
    const document = (await (await fetch(`${app.httpUrl}/openapi.json`)).json()) as OpenApi;
    for (const [name, { post }] of Object.entries(document.webhooks)) {
      const about = post.parameters.map(({ description }) => description);
      assert.ok(
        about.some((text) => text.startsWith('Proof of the sender')),
        name,
      );
      assert.ok(
        about.every((text) => text.length > 15),
        name,
      );
    }
  });

  for (const path of ['/docs/api', '/docs/api/events'])
    test(`${path} passes axe with eight entries open`, async (t) => {
      const page = await browser.openPage(t, { bypassCSP: true });
      await page.goto(app.httpUrl + path);
      await page.evaluate(
        "document.querySelectorAll('details.operation').forEach((one, at) => { one.open = at < 8; })",
      );
      // The words of the document stay English.
      const document = await (await fetch(`${app.httpUrl}/openapi.json`)).text();
      assert.deepEqual(await findPageFlaws(page, document.match(/\p{Script=Latin}+/gu) ?? []), []);
    });
});
