/** A mailed link to choose a password ends with the verified address that it was mailed to. */
import assert from 'node:assert/strict';
import { createPerson } from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { openBrowser } from '../../../test/support/authorization/credential-scene.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { createMailer } from '../../mail/mailer.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { findCredentials, findUserByLogin } from '../accounts/user-store.ts';
import { invitePerson, orderPasswordLink } from '../administration/invite-people.ts';
import { setEmail } from '../administration/manage-people.ts';
import { choosePassword, createPasswordLink, openPasswordLink } from './password-link.ts';

const PASSWORD = 'staple battery horse';
let invited = 0;

interface Linked {
  readonly login: string;
  /** The path of the page that the link opens. */
  readonly path: string;
}

function dependenciesOf({ server }: Bench) {
  const { store, world, cipher, url } = server;
  return { store, world, cipher, baseUrl: url, mailer: createMailer({ cipher, world }) };
}

async function invite(bench: Bench, sendsMail: boolean): Promise<Linked> {
  const login = `invited${++invited}`;
  const invitation = { login, name: 'Grace', email: `${login}@example.org`, sendsMail };
  const { url } = await invitePerson(dependenciesOf(bench), COMMAND_LINE, invitation);
  return { login, path: url.slice(bench.server.url.length) };
}

async function orderReset(bench: Bench, sendsMail: boolean): Promise<Linked> {
  const { login } = (await createPerson(bench.server)).user;
  const { url } = await orderPasswordLink(dependenciesOf(bench), COMMAND_LINE, { login, sendsMail });
  return { login, path: url.slice(bench.server.url.length) };
}

async function askAgain(bench: Bench): Promise<Linked> {
  const { user } = await createPerson(bench.server);
  const link = createPasswordLink(dependenciesOf(bench), user, { purpose: 'forgotten', mailedTo: user.email });
  await bench.server.store.writeAll([link.statement]);
  return { login: user.login, path: link.url.slice(bench.server.url.length) };
}

async function correctAddress({ server }: Bench, login: string): Promise<void> {
  await setEmail(server, COMMAND_LINE, { login, email: `right.${login}@example.org` });
}

async function readPassword({ server }: Bench, login: string): Promise<string | null | undefined> {
  return (await findCredentials(server.store, login))?.passwordHash;
}

const mailed: readonly [purpose: string, link: (bench: Bench) => Promise<Linked>][] = [
  ['invitation', (bench) => invite(bench, true)],
  ['reset', (bench) => orderReset(bench, true)],
  ['forgotten', askAgain],
];

const cases: Case[] = mailed.flatMap(([purpose, link]): Case[] => [
  [
    `${purpose}: the link works while its address is the verified one, whatever the case of its letters`,
    async (bench) => {
      const { login, path } = await link(bench);
      const email = (await findUserByLogin(bench.server.store, login))?.email ?? '';
      await setEmail(bench.server, COMMAND_LINE, { login, email: email.toUpperCase() });
      const { location } = await createFormClient(bench.server.url).submit(path, '/password', { password: PASSWORD });
      assert.match(location ?? '', /^\/sign-in\?done=password_/);
    },
  ],
  [
    `${purpose}: an administrator who corrects the address makes the link worthless, also for a page that is open`,
    async (bench) => {
      const { login, path } = await link(bench);
      const client = createFormClient(bench.server.url);
      const { body } = await client.get(path);
      await correctAddress(bench, login);
      assert.equal((await client.get(path)).status, 403);
      const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(body)?.[1] ?? '';
      const token = new URLSearchParams(path.split('?')[1]).get('token') ?? '';
      assert.equal((await client.post('/password', { csrf_token, token, password: PASSWORD })).location, path);
      assert.equal(await readPassword(bench, login), null);
    },
  ],
  [
    `${purpose}: an address that changes while the password is set wins`,
    async (bench) => {
      const { login, path } = await link(bench);
      const dependencies = dependenciesOf(bench);
      const token = new URLSearchParams(path.split('?')[1]).get('token') ?? '';
      const opened = await openPasswordLink(dependencies, token);
      assert.ok(opened);
      await correctAddress(bench, login);
      const audit = auditStatement({ kind: 'password_set', userId: opened.user.id }, bench.server.world.nowMs());
      const chosen = { token, link: opened, password: PASSWORD, deletesTokens: false, audit, tokensAudit: audit };
      assert.equal(await choosePassword(dependencies, chosen), false);
      assert.equal(await readPassword(bench, login), null);
    },
  ],
]);

checkConformance('a mailed link', [
  ...cases,
  [
    'ends when its person gives another address',
    async (bench) => {
      const { login, path } = await orderReset(bench, true);
      const { id, name } = (await findUserByLogin(bench.server.store, login))!;
      const person = await openBrowser(bench.server, id);
      const given = { name, email: 'other@example.org' };
      assert.equal((await person.submit('/account', '/account', given)).location, '/account?done=saved');
      assert.equal((await createFormClient(bench.server.url).get(path)).status, 403);
    },
  ],
]);

checkConformance('a link that was shown', [
  [
    'outlives a change of the address',
    async (bench) => {
      for (const { login, path } of [await invite(bench, false), await orderReset(bench, false)]) {
        await correctAddress(bench, login);
        const { location } = await createFormClient(bench.server.url).submit(path, '/password', { password: PASSWORD });
        assert.match(location ?? '', /^\/sign-in\?done=password_/);
      }
    },
  ],
]);
