import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { createFormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, type PageService, servePages } from '../../../test/support/pages/page-service.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { confirmTotpStatement, hasTotp, offerTotpSeed } from '../accounts/totp-store.ts';
import { linkUpstreamStatement } from '../accounts/upstream-account-store.ts';
import { createUser, findUserByLogin } from '../accounts/user-store.ts';
import { disablePerson, setAdministrator, setEmail } from '../administration/manage-people.ts';
import { searchPeople } from '../administration/people-store.ts';

const PEOPLE = '/admin/users';
const EXPORT = '/admin/users-export';

async function openChange(service: PageService, login: string, change: string) {
  const client = await openAs(service, 'root');
  const path = `${PEOPLE}/${login}/${change}`;
  return { client, path, submit: (fields = {}) => client.submit(path, path, fields) };
}

test('each change asks first, and is in the audit log', async (t) => {
  const service = await servePages(t);
  const { store, cipher, world } = service;
  const root = await addUser(service, 'root', true);
  const ada = await addUser(service, 'ada');
  await offerTotpSeed(store, cipher, { userId: ada.id, seed: 'JBSWY3DPEHPK3PXP' });
  await store.writeAll([confirmTotpStatement({ userId: ada.id, timeStep: 1, nowMs: world.nowMs() })]);
  const cases: [change: string, question: RegExp, kind: string][] = [
    ['reset-second-step', /Turn off the second step of ada\?/, 'totp_disabled'],
    ['verify-email', /<strong>ada@example\.org<\/strong>/, 'user_changed'],
    ['make-admin', /Let ada administer the service\?/, 'administrator_added'],
    ['unmake-admin', /Remove the administrator role from ada\?/, 'administrator_removed'],
    ['disable', /Disable ada\?/, 'user_disabled'],
    ['enable', /Enable ada\?/, 'user_enabled'],
  ];
  for (const [change, question, kind] of cases)
    await t.test(change, async () => {
      const { client, path, submit } = await openChange(service, 'ada', change);
      assert.match((await client.get(path)).body, question);
      assert.equal((await submit()).location, `${PEOPLE}/ada?done=${change}`);
      assert.match((await client.get(`${PEOPLE}/ada?done=${change}`)).body, /<div class="notice" role="status">/);
      const [event] = (await listEvents(store, { userId: ada.id, limit: 100 })).filter((one) => one.kind === kind);
      assert.equal(event?.actorId, root.id);
      assert.equal((await client.get(path)).status, 404, 'there is nothing to change now');
    });
  assert.equal(await hasTotp(store, ada.id), false);
  assert.equal((await findUserByLogin(store, 'ada'))?.isEmailVerified, true);
});

test('an address that changed after the page was opened is not verified', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  await addUser(service, 'ada');
  const { client, submit } = await openChange(service, 'ada', 'verify-email');
  const refused = await client.readRefusal(submit({ email: 'eve@example.org' }));
  assert.deepEqual([refused.status, refused.body.includes('has another address by now')], [422, true]);
  assert.equal((await findUserByLogin(service.store, 'ada'))?.isEmailVerified, false);
});

test('a second click verifies an address once, and one that was replaced by a verified address is refused', async (t) => {
  const service = await servePages(t);
  const { store, world } = service;
  await addUser(service, 'root', true);
  await addUser(service, 'ada');
  const { client, path } = await openChange(service, 'ada', 'verify-email');
  const fields = readHidden((await client.get(path)).body, path);
  for (const click of ['first', 'second'])
    assert.equal((await client.post(path, fields)).location, `${PEOPLE}/ada?done=verify-email`, click);
  await setEmail({ store, world }, COMMAND_LINE, { login: 'ada', email: 'lovelace@example.org' });
  const refused = await client.post(path, fields);
  const shown = await client.get(refused.location ?? '');
  assert.deepEqual([shown.status, shown.body.includes('has another address by now')], [422, true]);
  assert.equal(
    (await client.get((refused.location ?? '').replace(/\?.*/, ''))).status,
    200,
    'a reload shows the person',
  );
});

test('an address cannot look like another: what a person types has no hidden characters', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  for (const hidden of ['\u200b', '\u202e', '\u00ad', '\u0001', '\u{e0061}', '\ufe0f', '\u3164', '\u2800']) {
    const email = `ro${hidden}ot@example.org`;
    const refused = await client.readRefusal(client.submit('/account', '/account', { name: 'Ada', email }));
    assert.deepEqual([refused.status, refused.body.includes('is not an email address')], [422, true]);
  }
  assert.equal((await findUserByLogin(service.store, 'ada'))?.email, 'ada@example.org');
});

test('a name cannot look like another, turn the text around it, or be blank', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const save = (name: string) => client.submit('/account', '/account', { name, email: '' });
  for (const hidden of ['\u200b', '\u202e', '\u2066', '\u00ad', '\u0001', '\u{e0061}', '\u3164', '\ufeff']) {
    const refused = await client.readRefusal(save(`Gr${hidden}ace`));
    assert.deepEqual([refused.status, refused.body.includes('without hidden characters')], [422, true], hidden);
    assert.equal((await client.readRefusal(save(hidden))).status, 422, hidden);
  }
  assert.equal((await client.readRefusal(save('\u2800'))).status, 422);
  for (const name of ['Ada Lovelace', '王小明', 'نیما‌یوشیج', '👩‍💻 Ada', '❤️', "O'Brien-Ñandú"]) {
    await save(name);
    assert.equal((await findUserByLogin(service.store, 'ada'))?.name, name);
  }
});

test('the last administrator stays one, and no administrator disables the own account', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const { client, submit } = await openChange(service, 'root', 'unmake-admin');
  const refused = await client.readRefusal(submit());
  assert.deepEqual([refused.status, refused.body.includes('this is the last administrator')], [422, true]);
  assert.equal((await client.get(`${PEOPLE}/root/disable`)).status, 404);
  assert.equal((await findUserByLogin(service.store, 'root'))?.isAdmin, true);
});

forEachEngine('of two administrators who take the rights from each other at once, one stays', async (store) => {
  const world = createStillWorld();
  for (let round = 0; round < 5; round += 1) {
    const [first, second] = await Promise.all(
      ['a', 'b'].map((name) => addUser({ store, world }, `${name}${round}`, true)),
    );
    const dependencies = { store, world };
    const outcomes = await Promise.allSettled([
      setAdministrator(dependencies, COMMAND_LINE, { login: first!.login, isAdmin: false }),
      disablePerson(dependencies, COMMAND_LINE, second!.login),
    ]);
    const { people: left } = await searchPeople(store, { state: 'admin', limit: 10 });
    assert.equal(left.filter(({ disabledAtMs }) => disabledAtMs === null).length, 1, JSON.stringify(outcomes));
    for (const login of [first!.login, second!.login])
      await disablePerson(dependencies, COMMAND_LINE, login).catch(() => {});
    const spare = await addUser({ store, world }, `spare${round}`, true);
    for (const { login } of left) if (login !== spare.login) await disablePerson(dependencies, COMMAND_LINE, login);
    await addUser({ store, world }, `next${round}`, true);
    await disablePerson(dependencies, COMMAND_LINE, spare.login);
    await setAdministrator(dependencies, COMMAND_LINE, { login: `next${round}`, isAdmin: true });
  }
});

test('a person is invited until there is a way to sign in', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  const invited = { name: 'Grace', email: null, isAdmin: false, passwordHash: null };
  const grace = await createUser(service.store, service.world, { login: 'grace', ...invited });
  await createUser(service.store, service.world, { login: 'linus', ...invited });
  const readState = async (login: string) =>
    /<dt>State<\/dt><dd>(.*?)<\/dd>/.exec((await client.get(`${PEOPLE}/${login}`)).body)?.[1];
  const listTags = async () => (await client.get(PEOPLE)).body.split('<span class="tag">invited</span>').length - 1;
  assert.deepEqual(
    [await readState('root'), await readState('grace')],
    ['active', 'invited, without a way to sign in yet'],
  );
  assert.equal(await listTags(), 2);
  const account = { issuer: 'https://id.example', subject: '1', userId: grace.id, label: 'Grace', linkedAtMs: 1 };
  await service.store.writeAll([linkUpstreamStatement(account)]);
  assert.equal(await readState('grace'), 'active');
  assert.equal(await listTags(), 1);
  await disablePerson(service, COMMAND_LINE, 'linus');
  assert.match((await readState('linus')) ?? '', /disabled/);
});

test('changes that give a way in need a recent sign-in', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const ada = await addUser(service, 'ada');
  const client = await openAs(service, 'root');
  assert.doesNotMatch((await client.get(`${PEOPLE}/ada`)).body, /Turn off the second step/);
  service.world.moveMs(31 * 60_000);
  await offerTotpSeed(service.store, service.cipher, { userId: ada.id, seed: 'JBSWY3DPEHPK3PXP' });
  await service.store.writeAll([confirmTotpStatement({ userId: ada.id, timeStep: 1, nowMs: service.world.nowMs() })]);
  for (const change of ['password-link', 'verify-email', 'reset-second-step', 'make-admin'])
    assert.match((await client.get(`${PEOPLE}/ada/${change}`)).location ?? '', /^\/sign-in\?return_to=/, change);
  const { location } = await client.get(`${PEOPLE}/ada/password-link`);
  const asked = (await client.get(location ?? '')).body;
  assert.match(asked, /needs a sign-in within the last half hour/);
  assert.doesNotMatch(asked, /Continue/, 'it would lead back here');
  assert.equal((await client.get(`${PEOPLE}/ada/disable`)).status, 200);
});

test('search and filters stay in the address of the next page and of the export', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const { store, world } = service;
  const passwordHash = null;
  for (let count = 0; count < 60; count += 1) {
    const login = `dev${String(count).padStart(2, '0')}`;
    await createUser(store, world, { login, name: '=Dev, "Team"', email: null, isAdmin: false, passwordHash });
  }
  const client = await openAs(service, 'root');
  const first = await client.get(`${PEOPLE}?q=DEV&state=invited`);
  const [, next = ''] = /href="([^"]+after=[^"]+)"/.exec(first.body) ?? [];
  assert.equal(next, `${PEOPLE}?q=DEV&amp;state=invited&amp;after=dev49`);
  const second = await client.get(next.replaceAll('&amp;', '&'));
  const count = (body: string) => body.split('<li class="item">').length - 1;
  assert.deepEqual([count(first.body), count(second.body)], [50, 10]);
  assert.match(second.body, /name="q"[^>]* value="DEV"/);
  assert.match(second.body, /<option value="invited" selected>/);
  assert.match((await client.get(`${PEOPLE}?q=%25`)).body, /No person matches/);

  const csv = await client.get(`${EXPORT}?q=dev&format=csv`);
  const lines = csv.body.trimEnd().split('\r\n');
  assert.equal(lines.length, 61);
  assert.match(lines[1] ?? '', /^dev00,"'=Dev, ""Team""",,false,false,\d+,,,[0-9a-f]{24}$/);
  assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="people.csv"');
  const jsonl = await client.get(`${EXPORT}?state=admin&format=jsonl`);
  assert.deepEqual(
    jsonl.body
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { login: string }).login),
    ['root'],
  );
});

test('every person has a page, whatever the login', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  for (const login of ['export', 'test-mail', 'users-export']) {
    await addUser(service, login);
    const page = await client.get(`${PEOPLE}/${login}`);
    assert.deepEqual([page.status, page.headers.get('content-disposition')], [200, null], login);
    assert.match(page.body, new RegExp(`<h1>[^<]*${login}`, 'i'));
  }
  const csv = /href="([^"]*format=csv)"/.exec((await client.get(PEOPLE)).body)?.[1] ?? '';
  assert.match((await client.get(csv)).headers.get('content-disposition') ?? '', /people\.csv/);
});

test('the pages are not there for others', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  await addUser(service, 'ada');
  const ada = await openAs(service, 'ada');
  for (const path of [EXPORT, ...['', '/root', '/root/disable', '/root/password-link'].map((end) => PEOPLE + end)])
    assert.equal((await ada.get(path)).status, 404, path);
  assert.equal((await createFormClient(service.url).get(EXPORT)).status, 303);
});

test('an export that cannot begin is refused as the page is, and no file breaks off', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  for (const path of [PEOPLE, EXPORT]) {
    const answer = await client.get(`${path}?q=a%00b`);
    assert.deepEqual([answer.status, answer.headers.get('content-disposition')], [400, null], path);
  }
});
