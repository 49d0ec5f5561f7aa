import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type FormClient, readHidden } from '../../test/support/network/form-client.ts';
import { startReceiver } from '../../test/support/network/receiver.ts';
import { type ConsoleService, startConsoleService } from '../../test/support/pages/console-service.ts';
import { saveTestVersion } from '../../test/support/prediction/model-versions.ts';
import { promoteModel } from '../prediction/registry/model-store.ts';

/** Paths that the test skips: signing out would end it, and a script reads the options of a passkey. */
const NOT_WALKED = ['/sign-out', '/account/security/passkeys/options'];

test('no form of the console answers with a page: each leads on with 303, be it refused or not', async (t) => {
  const client = await openFilledConsole(t);
  const pages = await listPages(client);
  const forms = listForms(pages).filter(({ action }) => !NOT_WALKED.includes(action));
  const kinds = new Set(forms.map(({ action }) => action.replace(/app_[\w-]+|\d+/g, '*')));
  assert.ok(kinds.size >= 20, [...kinds].join('\n'));
  for (const { page, action, hidden } of forms) {
    const answer = await client.post(action, hidden);
    assert.equal(answer.status, 303, `${page} → ${action}`);
    const shown = await client.get(answer.location ?? '');
    // An earlier form may have deleted the object.
    assert.ok([200, 303, 404, 422].includes(shown.status), `${action} → ${answer.location}: ${shown.status}`);
  }
});

test('a refused form is shown once, to its own session; loaded again, the page is as it was', async (t) => {
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  for (const login of ['ada', 'grace']) await service.addUser(login);
  const client = await service.openAs('ada');
  const { location } = await client.submit('/account', '/account', { name: '', email: 'ada@example.org' });
  assert.match(location ?? '', /^\/account\?refused=/);
  assert.equal((await (await service.openAs('grace')).get(location ?? '')).location, '/account');
  const shown = await client.get(location ?? '');
  assert.deepEqual([shown.status, /role="alert"/.test(shown.body)], [422, true]);
  assert.equal((await client.get(location ?? '')).location, '/account');
});

/** Values that a form accepts in the fields that are not under test. */
const RIGHT: Readonly<Record<string, string>> = {
  login: 'eve',
  name: 'Eve',
  email: 'eve@example.org',
  owner: 'ada',
  days: '7',
  scope: 'all_hook',
  url: 'https://receiver.example.org/hook',
  encryption_type: '1',
  profile: 'gitcode',
  kind: 'confidential',
  way: 'password',
  redirect_uri: 'https://ci.example.org/cb',
};
const WRONG = ['', 'x'.repeat(3000), '\u200b', '-1', 'ftp://[::1]/'];

test('a refusal calls each field by its label, as it stands on the page, and its page has one focus', async (t) => {
  const client = await openFilledConsole(t);
  const refusals: string[] = [];
  const unfocused: string[] = [];
  for await (const { action, fields, field, refusal, body } of refuseForms(client)) {
    refusals.push(`${action} ${fields.join(',')}: ${refusal.replace(/<[^>]*>/g, ' ')}`);
    const focused = body.match(/<[^>]* autofocus[ >]/g) ?? [];
    if (focused.length !== 1) unfocused.push(`${action} ${field}: ${focused.join(' ')}`);
  }
  assert.ok(refusals.length > 50, String(refusals.length));
  assert.deepEqual([...new Set(unfocused)], []);
  const bare = refusals.filter((line) => {
    const [, fields = '', refusal = ''] = /^\S+ (\S+): ([\s\S]*)$/.exec(line) ?? [];
    const unquoted = refusal.replace(/&quot;.*?&quot;|“.*?”/g, '');
    return fields
      .split(',')
      .some((name) => new RegExp(`(?<!the )\\b${name} must|\\bthis ${name}:|\\b${name}_|_${name}\\b`).test(unquoted));
  });
  assert.deepEqual([...new Set(bare)], []);
});

/** Sends each form several times, each time with another field wrong, and yields the pages that refuse it. */
async function* refuseForms(client: FormClient) {
  for (const { method, action, hidden, fields } of listFieldForms(await listPages(client)))
    for (const field of fields)
      for (const wrong of WRONG) {
        const right = Object.fromEntries(fields.map((name) => [name, RIGHT[name] ?? '']));
        const sent = { ...hidden, ...right, [field]: wrong };
        const { body } = await (method === 'post'
          ? client.readOutcome(client.post(action, sent))
          : client.get(`${action}?${new URLSearchParams(sent).toString()}`));
        const refusal = /role="alert"[^>]*>([\s\S]*?)<\/div>/.exec(body)?.[1];
        if (refusal !== undefined) yield { action, fields, field, refusal, body };
      }
}

/** Lists forms with fields to fill in. */
function listFieldForms(pages: ReadonlyMap<string, string>) {
  const found = new Map<string, { method: string; action: string; hidden: Record<string, string>; fields: string[] }>();
  for (const [page, body] of pages)
    for (const [, method = '', action = page.split('?')[0]!, content = ''] of body.matchAll(
      /<form method="(\w+)"(?: action="([^"]+)")?[^>]*>([\s\S]*?)<\/form>/g,
    )) {
      const names = [...content.matchAll(/<(?:input(?! type="hidden"| hidden)|textarea|select)[^>]* name="([^"]+)"/g)];
      const fields = [...new Set(names.map(([, name = '']) => name))];
      if (fields.length > 0) found.set(action, { method, action, hidden: readHidden(body, action), fields });
    }
  return [...found.values()];
}

/** Signs an administrator in to a console that has data on each kind of page, and a second person. */
async function openFilledConsole(t: TestContext): Promise<FormClient> {
  const receiver = await startReceiver();
  t.after(() => receiver[Symbol.asyncDispose]());
  const service = await startConsoleService({ PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  await service.addUser('ada', true);
  await service.addUser('grace');
  const client = await service.openAs('ada');
  await fillConsole(service, client, receiver.url);
  return client;
}

async function fillConsole({ store }: ConsoleService, client: FormClient, url: string): Promise<void> {
  await client.submit('/webhooks/new', '/webhooks/new', { owner: 'ada', name: 'doors', description: '' });
  const hook = { url, encryption_type: '1', password: 'k3y', profile: 'gitcode', push_events: '1' };
  const made = await client.submit('/webhooks/ada/doors/new', '/webhooks/ada/doors', hook);
  const path = (made.location ?? '').replace('?done=created', '');
  await client.submit(path, `${path}/test`, {});
  await client.submit('/account/tokens', '/account/tokens', { name: 'a', scope: 'all_hook', days: '7' });
  const application = { name: 'CI', redirect_uri: 'https://ci.example.org/cb', kind: 'confidential' };
  await client.submit('/account/applications/new', '/account/applications', application);
  for (const version of [1, 2]) {
    await saveTestVersion(store, 'm');
    await promoteModel(store, { name: 'm', version, nowMs: version, reason: 'by a test' });
  }
  await client.submit('/account/security', '/account/security/totp', {});
}

/** Follows all links, and returns the pages by path with query. */
async function listPages(client: FormClient): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  const waiting = ['/', '/account/security/totp'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const { body } = await client.get(path);
    pages.set(path, body);
    for (const [, link = ''] of body.matchAll(/href="(\/[^"]*)"/g)) {
      const target = link.replaceAll('&amp;', '&');
      if (!/^\/(assets|sign-)/.test(target)) waiting.push(target);
    }
  }
  return pages;
}

function listForms(pages: ReadonlyMap<string, string>) {
  const found = new Map<string, { page: string; action: string; hidden: Record<string, string> }>();
  for (const [page, body] of pages)
    for (const [, action = ''] of body.matchAll(/<form method="post" action="([^"]+)"/g))
      if (!found.has(action)) found.set(action, { page, action, hidden: readHidden(body, action) });
  return [...found.values()];
}
