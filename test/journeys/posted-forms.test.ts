/** No page answers a form: every route of the pages that takes a POST answers with 303, so that a reload sends nothing twice. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { createApplication } from '../../src/authorization/applications/application.ts';
import { createConsoleArea } from '../../src/console/area.ts';
import { realWorld } from '../../src/world.ts';
import { PKCE } from '../support/authorization/authorization-requests.ts';
import { startAuthorizationServer } from '../support/authorization/authorization-server.ts';
import { type Answer, createFormClient, type FormClient } from '../support/network/form-client.ts';
import { type ConsoleService, readCsrf, startConsoleService } from '../support/pages/console-service.ts';
import { createStorePlace, openTestStore } from '../support/store/engines.ts';

const UPSTREAM = { UPSTREAM_ISSUER: 'http://127.0.0.1:9', UPSTREAM_CLIENT_ID: 'trivet' };
/** A script reads these, so that they answer with JSON; their refusals are pages all the same. */
const READ_BY_SCRIPT = /\/options$/;

const PARAMETERS: Readonly<Record<string, string>> = { owner: 'ada', clientId: 'app_1' };

let routes: readonly string[];
before(async () => {
  routes = await listPostRoutes();
});

test('every route of the pages that takes a form leads on with 303 when it refuses, and the page behind says why', async (t) => {
  const service = await startConsoleService({ ...UPSTREAM, PREDICTION_LEARNING: 'false' });
  t.after(() => service[Symbol.asyncDispose]());
  assert.ok(routes.length >= 45, `${routes.length} routes`);
  await service.addUser('ada', true);
  let client = await service.openAs('ada');
  for (const route of routes) {
    const path = route.replace(/:(\w+)(\{(?:[^{}]|\{[^}]*\})*\})?/g, (_, name: string) => PARAMETERS[name] ?? '1');
    const stranger = createFormClient(service.url);
    await assertRefused(stranger, { path, fields: {} });
    await assertRefused(stranger, { path, fields: {}, headers: { 'content-type': 'application/json' } });
    await assertRefused(stranger, { path, fields: { a: 'x'.repeat(1_100_000) } });
    await assertRefused(client, { path, fields: { csrf_token: 'wrong' } });
    await assertRefused(client, { path, fields: { ...(await readCsrf(client)), a: 'x'.repeat(300_000) } });
    await assertNoPage(client, { path, fields: await readCsrf(client) });
    if ((await client.get('/account')).status === 303) client = await service.openAs('ada');
  }
});

test('a refusal of a form is shown to the browser that sent it alone, and a form that does not exist is not found', async (t) => {
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  const client = createFormClient(service.url);
  const answer = await client.post('/account/tokens', { name: 'a' }, { 'content-type': 'text/plain' });
  assert.equal(answer.location, '/sign-in?done=session_ended', 'a stranger signs in first');
  const refused = await client.post('/sign-in', { a: 'x'.repeat(1_100_000) });
  const shown = await client.get(refused.location ?? '');
  assert.deepEqual([shown.status, /must be at most 1048576 bytes/.test(shown.body)], [413, true]);
  const other = await createFormClient(service.url).get(refused.location ?? '');
  assert.deepEqual([other.status, /must be at most 1048576 bytes/.test(other.body)], [410, false]);
  assert.equal((await client.post('/nowhere', {})).status, 404);
});

test('a form from another site is refused in words that carry nothing of what was sent', async (t) => {
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  const sent = { name: 'planted' };
  const refused = await createFormClient(service.url).post('/sign-in', sent, { origin: 'https://evil.example' });
  assert.equal(refused.location, '/refused?refused=another-site');
  const shown = await createFormClient(service.url).get(refused.location ?? '');
  assert.deepEqual([shown.status, /sent from another site/.test(shown.body)], [403, true]);
});

test('the forms before and beside the account lead on with 303 when they are accepted', async (t) => {
  const service = await startConsoleService();
  t.after(() => service[Symbol.asyncDispose]());
  const ada = await service.addUser('ada');
  const client = await service.openAs('ada');
  const { store } = service;
  const register = async (redirectUri: string) => {
    const form = {
      name: 'Harbour',
      homepage: '',
      description: '',
      redirectUris: [redirectUri],
      isPublic: !redirectUri.startsWith('https:'),
    };
    const created = await createApplication(store, realWorld, { form, actor: { userId: ada.id } });
    const { clientId } = created.application;
    const query = { client_id: clientId, redirect_uri: redirectUri, response_type: 'code', scope: 'all_user', ...PKCE };
    return `/oauth/authorize?${new URLSearchParams(query).toString()}`;
  };
  const consent = '/oauth/authorize';
  const web = await register('https://client.example/callback');
  for (const decision of ['deny', 'allow'])
    assert.match(
      assertLeads(await client.submit(web, consent, { decision })),
      /^https:\/\/client\.example\/callback\?/,
    );

  const native = await register('com.example.app:/callback');
  const asked = assertLeads(await client.submit(native, consent, { decision: 'allow' }));
  assert.match(asked, /^\/oauth\/authorize\/continue\?answer=/);
  assert.equal((await (await service.openAs('ada')).get(asked)).status, 410, 'another session');
  assert.match((await client.get(asked)).body, /href="com\.example\.app:\/callback\?code=tvt_/);
  const again = await client.get(asked);
  assert.deepEqual([again.status, /com\.example/.test(again.body)], [410, false], 'the code is handed over once');

  for (const decision of ['allow', 'deny']) {
    const codes = await requestDeviceCode(service);
    const page = assertLeads(await client.submit('/device', '/device', { user_code: codes.user_code }));
    assert.match(page, /^\/device\?request=/);
    for (let look = 0; look < 2; look += 1) assert.match((await client.get(page)).body, /Allow/);
    const foreign = await (await service.openAs('ada')).get(page);
    assert.match(foreign.location ?? '', /^\/device\?refused=/, 'another session');
    assert.match(assertLeads(await client.submit(page, '/device', { decision })), /^\/device\?done=/);
    assert.match((await client.get(page)).location ?? '', /^\/device\?refused=/, 'it was decided');
  }
});

interface Posted {
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

async function assertRefused(client: FormClient, posted: Posted): Promise<void> {
  const answer = await assertNoPage(client, posted);
  assert.equal(answer.status, 303, `${posted.path}: ${answer.status}`);
}

/** Answers no page, and leads to one that works, if it leads to one of ours. */
async function assertNoPage(client: FormClient, { path, fields, headers }: Posted): Promise<Answer> {
  const answer = await client.post(path, fields, headers);
  if (READ_BY_SCRIPT.test(path) && answer.status === 200) return answer;
  assert.deepEqual([answer.status, answer.body], [303, ''], path);
  const location = answer.location ?? '';
  if (location.startsWith('/')) {
    const { status } = await client.get(location);
    // 503: the provider of the upstream sign-in is not there.
    assert.ok((status < 500 && status !== 405 && status !== 410) || status === 503, `${path} → ${location}: ${status}`);
  }
  return answer;
}

function assertLeads({ status, body, location }: Answer): string {
  assert.deepEqual([status, body], [303, '']);
  return location ?? '';
}

async function requestDeviceCode({ url }: ConsoleService): Promise<{ readonly user_code: string }> {
  const body = new URLSearchParams({ client_id: 'trivet-cli', scope: 'all_user' });
  const answer = await fetch(`${url}/oauth/device`, { method: 'POST', body });
  assert.equal(answer.status, 200);
  return (await answer.json()) as { user_code: string };
}

/** The paths with POST of all pages that a process with every part serves, as `/path/:parameter`. */
async function listPostRoutes(): Promise<string[]> {
  const place = await createStorePlace('sqlite');
  await using store = await openTestStore(place);
  await using server = await startAuthorizationServer(store, { environment: UPSTREAM });
  const { guard } = server.area;
  // Their routes are listed, never called.
  const [hookAdmin, modelAdmin] = [{} as never, {} as never];
  const console = createConsoleArea({ world: realWorld, guard, hookAdmin, modelAdmin });
  const mounts = [...server.area.routes, ...(console.routes ?? [])].filter(({ errors }) => errors === 'page');
  const paths = mounts.flatMap(({ path, routes: { routes } }) =>
    routes.filter(({ method }) => method === 'POST').map((route) => `${path}/${route.path}`.replace(/\/+/g, '/')),
  );
  return [...new Set(paths.map((path) => (path === '/' ? path : path.replace(/\/$/, ''))))];
}
