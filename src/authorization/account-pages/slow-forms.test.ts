/** Forms whose last byte arrives after the session has ended, or after its person has lost a role. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { TOTP } from 'otpauth';
import { type FormClient, readHidden } from '../../../test/support/network/form-client.ts';
import { addUser, openAs, type PageService, servePages } from '../../../test/support/pages/page-service.ts';
import type { Store } from '../../database/store.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { changeAndRecord } from '../accounts/audit-store.ts';
import { setPasswordStatement } from '../accounts/password-store.ts';
import { findPendingTotp, hasTotp } from '../accounts/totp-store.ts';
import { findUserByLogin, type User } from '../accounts/user-store.ts';
import { setAdministrator } from '../administration/manage-people.ts';

const TOTP_PAGE = '/account/security/totp';

interface SlowForm {
  readonly client: FormClient;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  /** What happens before the last byte. */
  readonly meanwhile: () => Promise<unknown>;
}

/** A service, and a form to it that is sent but for its last byte until its session has been read. */
async function serveSlowForms(t: TestContext) {
  let onSession = () => {};
  const wrapStore = (store: Store): Store => ({
    ...store,
    read: async (statement, parameters) => {
      const rows = await store.read(statement, parameters);
      if (statement.name === 'live-session') onSession();
      return rows;
    },
  });
  const service = await servePages(t, { wrapStore });
  const sendSlowly = async ({ client, path, fields, meanwhile }: SlowForm): Promise<string> => {
    const body = new URLSearchParams(fields).toString();
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${new URL(service.url).host}`,
      'Connection: close',
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${body.length}`,
      `Origin: ${service.url}`,
      `Cookie: ${[...client.jar].map((pair) => pair.join('=')).join('; ')}`,
    ].join('\r\n');
    const isRead = new Promise<void>((resolve) => {
      onSession = resolve;
    });
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`${head}\r\n\r\n${body.slice(0, -1)}`);
    await isRead;
    await meanwhile();
    socket.write(body.slice(-1));
    const answer = await text(socket);
    assert.match(answer, /^HTTP\/1\.1 303 /);
    return /^location: (.*)\r$/im.exec(answer)?.[1] ?? '';
  };
  return { service, sendSlowly };
}

function setPassword({ store, world }: PageService, { id }: User): Promise<unknown> {
  return store.writeAll([setPasswordStatement(id, 'a hash', world.nowMs())]);
}

/** The fields of the form that turns on the authenticator app. */
async function offerTotp({ store, cipher, world }: PageService, client: FormClient, { id }: User) {
  await client.submit('/account/security', TOTP_PAGE, {});
  const hidden = readHidden((await client.get(TOTP_PAGE)).body, `${TOTP_PAGE}/confirm`);
  const { seed } = (await findPendingTotp(store, cipher, id))!;
  return { ...hidden, code: new TOTP({ secret: seed }).generate({ timestamp: world.nowMs() }) };
}

test('a form that arrives after a new password turns on no authenticator app', async (t) => {
  const { service, sendSlowly } = await serveSlowForms(t);
  const ada = await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const fields = await offerTotp(service, client, ada);
  const path = `${TOTP_PAGE}/confirm`;
  const location = await sendSlowly({ client, path, fields, meanwhile: () => setPassword(service, ada) });
  assert.match(location, /^\/sign-in/);
  assert.equal(await hasTotp(service.store, ada.id), false);
});

test('a form that arrives after its person has lost the role makes no administrator', async (t) => {
  const { service, sendSlowly } = await serveSlowForms(t);
  for (const [login, isAdmin] of [
    ['root', true],
    ['eve', true],
    ['ada', false],
  ] as const)
    await addUser(service, login, isAdmin);
  const client = await openAs(service, 'eve');
  const path = '/admin/users/ada/make-admin';
  const fields = readHidden((await client.get(path)).body, path);
  const demote = () => setAdministrator(service, COMMAND_LINE, { login: 'eve', isAdmin: false });
  assert.match(await sendSlowly({ client, path, fields, meanwhile: demote }), /^\/refused/);
  assert.equal((await findUserByLogin(service.store, 'ada'))?.isAdmin, false);
});

test('a new password that commits before the authenticator app is turned on leaves it off', async (t) => {
  let meanwhile: (() => Promise<unknown>) | undefined;
  const wrapStore = (store: Store): Store => ({
    ...store,
    call: async (procedure, input) => {
      if (procedure.name === changeAndRecord.name) await meanwhile?.();
      return await store.call(procedure, input);
    },
  });
  const service = await servePages(t, { wrapStore });
  const ada = await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const fields = await offerTotp(service, client, ada);
  meanwhile = () => setPassword(service, ada);
  assert.equal((await client.post(`${TOTP_PAGE}/confirm`, fields)).location, TOTP_PAGE);
  assert.equal(await hasTotp(service.store, ada.id), false);
});
