/** Mails and links that an administrator creates. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addVerifiedUser, readPasswordLink, useMailServer } from '../../../test/support/mail/mail-server.ts';
import { findReasonToSkipMail } from '../../../test/support/mail/smtp-server.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import {
  addUser,
  openAs,
  PASSWORD,
  type PageService,
  servePages,
  submitSignIn,
} from '../../../test/support/pages/page-service.ts';
import { createMailer } from '../../mail/mailer.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { setLanguageStatement } from '../account-pages/language-store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { linkUpstreamStatement } from '../accounts/upstream-account-store.ts';
import { createUser, findUserByLogin } from '../accounts/user-store.ts';
import { invitePerson } from '../administration/invite-people.ts';

const FORGOT = '/forgot-password';
const NEW_PASSWORD = 'staple battery horse';

describe('with a mail server', { skip: findReasonToSkipMail() }, async () => {
  const { readMails } = await useMailServer();

  test('an invited person gets a mail, chooses a password, and signs in', async (t) => {
    const service = await servePages(t, { withMail: true });
    const root = await addUser(service, 'root', true);
    const client = await openAs(service, 'root');
    const given = { login: 'grace', name: 'Grace', email: 'grace@example.org', way: 'mail' };
    assert.equal((await client.submit('/admin/users', '/admin/users', given)).location, '/admin/users?done=invited');
    const [mail] = await readMails(service);
    assert.deepEqual([mail?.to, mail?.subject], [['grace@example.org'], `You are invited to ${service.url}`]);
    const path = readPasswordLink(mail, service);
    const grace = createFormClient(service.url);
    service.world.moveMs(6 * 24 * 3_600_000);
    assert.match(
      (await grace.submit(path, '/password', { password: NEW_PASSWORD })).location ?? '',
      /^\/sign-in\?done=/,
    );
    assert.equal((await submitSignIn(grace, 'grace', NEW_PASSWORD)).location, '/');
    const user = (await findUserByLogin(service.store, 'grace'))!;
    assert.equal(user.isEmailVerified, true);
    const kinds = (await listEvents(service.store, { userId: user.id, limit: 9 })).map(({ kind, actorId }) => [
      kind,
      actorId,
    ]);
    assert.ok(kinds.some(([kind, actor]) => kind === 'user_invited' && actor === root.id));
  });

  test('an invitation is in the language of the inviting person, and a link in the one that its person chose', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addUser(service, 'root', true);
    const client = await openAs(service, 'root');
    client.jar.set('trivet_language', 'zh-CN');
    const given = { login: 'grace', name: 'Grace', email: 'grace@example.org', way: 'mail' };
    await client.submit('/admin/users', '/admin/users', given);
    assert.deepEqual(
      (await readMails(service)).map(({ subject }) => subject),
      [`您受邀使用 ${service.url}`],
    );
    const grace = (await findUserByLogin(service.store, 'grace'))!;
    await service.store.writeAll([setLanguageStatement(grace.id, 'en')]);
    const path = '/admin/users/grace/password-link';
    await client.submit(path, path, { way: 'mail' });
    assert.deepEqual(
      (await readMails(service)).map(({ subject }) => subject),
      [`You are invited to ${service.url}`],
    );
  });

  test('an invitation by a token is in the language that the person of the token chose', async (t) => {
    const service = await servePages(t, { withMail: true });
    const root = await addUser(service, 'root', true);
    await service.store.writeAll([setLanguageStatement(root.id, 'zh-CN')]);
    const mailer = createMailer(service);
    const invitation = { login: 'grace', name: 'Grace', email: 'grace@example.org', sendsMail: true };
    await invitePerson(
      { ...service, baseUrl: service.url, mailer },
      { userId: root.id, login: 'root', isAdmin: true },
      invitation,
    );
    await invitePerson({ ...service, baseUrl: service.url, mailer }, COMMAND_LINE, {
      ...invitation,
      login: 'linus',
      email: 'l@example.org',
    });
    const subjects = (await readMails(service)).map(({ to, subject }) => `${to.join()} ${subject}`).sort();
    assert.deepEqual(subjects, [
      `grace@example.org 您受邀使用 ${service.url}`,
      `l@example.org You are invited to ${service.url}`,
    ]);
  });

  test('an invitation by mail asks for the address that is missing', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addUser(service, 'root', true);
    const client = await openAs(service, 'root');
    const given = { login: 'grace', name: 'Grace', email: '', way: 'mail' };
    const refused = await client.readRefusal(client.submit('/admin/users', '/admin/users', given));
    assert.equal(refused.status, 422);
    assert.match(refused.body, /Cannot send the invitation: it needs an email address\./);
    assert.match(refused.body, /id="field-email"[^>]*aria-invalid="true"/);
    assert.equal(await findUserByLogin(service.store, 'grace'), undefined);
  });

  test('an administrator sends a link to a verified address alone', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addUser(service, 'root', true);
    await addVerifiedUser(service, 'ada');
    await addUser(service, 'eve');
    const client = await openAs(service, 'root');
    const order = (login: string) => {
      const path = `/admin/users/${login}/password-link`;
      return client.submit(path, path, { way: 'mail' });
    };
    const refused = await client.readRefusal(order('eve'));
    assert.deepEqual([refused.status, refused.body.includes('no verified email address')], [422, true]);
    assert.equal((await order('ada')).location, '/admin/users/ada?done=mailed');
    const [mail, ...others] = await readMails(service);
    assert.deepEqual([mail?.to, others.length], [['ada@example.org'], 0]);
    readPasswordLink(mail, service);
  });

  test('a first password of a person who signs in with a provider is announced to the address', async (t) => {
    const service = await servePages(t, { withMail: true });
    const { order } = await addProviderPerson(service);
    await order('mail');
    const [mail] = await readMails(service);
    assert.equal(mail?.subject, 'Choose a new password');
    const ada = createFormClient(service.url);
    await ada.submit(readPasswordLink(mail, service), '/password', { password: NEW_PASSWORD });
    const subjects = (await readMails(service)).map(({ to, subject }) => [to, subject]);
    assert.deepEqual(subjects, [[['ada@example.org'], 'Your password was changed']]);
  });

  test('an administrator gets a test mail at the own address', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addUser(service, 'root', true);
    const client = await openAs(service, 'root');
    assert.equal(
      (await client.submit('/admin/users', '/admin/users/test-mail', {})).location,
      '/admin/users?done=test_mail',
    );
    assert.deepEqual(
      (await readMails(service)).map(({ to, subject }) => [to, subject]),
      [[['root@example.org'], 'A test mail']],
    );
  });
});

test('a link to the first password of a person who signs in with a provider is no invitation: it ends after a day', async (t) => {
  const service = await servePages(t);
  const { id, order, open } = await addProviderPerson(service);
  const path = await order('show');
  const [event] = (await listEvents(service.store, { userId: id, limit: 9 })).filter(
    ({ kind }) => kind === 'password_link_created',
  );
  assert.equal(event?.details?.purpose, 'reset');
  service.world.moveMs(23 * 3_600_000);
  assert.equal((await open(path)).status, 200);
  service.world.moveMs(2 * 3_600_000);
  assert.equal((await open(path)).status, 403);
});

/** Creates a person with an account at the provider and no password. */
async function addProviderPerson(service: PageService) {
  const { store, world } = service;
  await addUser(service, 'root', true);
  const email = 'ada@example.org';
  const person = { login: 'ada', name: 'Ada', email, isEmailVerified: true, isAdmin: false, passwordHash: null };
  const { id } = await createUser(store, world, person);
  const account = { issuer: 'https://id.example', subject: '1', userId: id, label: email, linkedAtMs: 1 };
  await store.writeAll([linkUpstreamStatement(account)]);
  const root = await openAs(service, 'root');
  const page = '/admin/users/ada/password-link';
  const order = async (way: 'mail' | 'show') => {
    const { location } = await root.submit(page, page, { way });
    return /\/password\?token=[\w-]+/.exec((await root.get(location ?? '')).body)?.[0] ?? '';
  };
  return { id, order, open: (path: string) => createFormClient(service.url).get(path) };
}

test('without mail the link is shown once, to be passed on', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'root', true);
  const client = await openAs(service, 'root');
  assert.match((await client.get(FORGOT)).body, /sends no mail/);
  const signIn = await createFormClient(service.url).get('/sign-in');
  assert.doesNotMatch(signIn.body, /forgot-password/);
  assert.match(signIn.body, /Forgot your password\? An administrator can give you a link/);
  const given = { login: 'grace', name: 'Grace', email: '', way: 'show' };
  const made = await client.submit('/admin/users', '/admin/users', given);
  assert.match(made.location ?? '', /^\/admin\/users\/grace\?done=created&once=/);
  const shown = await client.get(made.location ?? '');
  const [path] = /\/password\?token=[\w-]+/.exec(shown.body) ?? [];
  assert.doesNotMatch((await client.get(made.location ?? '')).body, /\/password\?token=/);
  const grace = createFormClient(service.url);
  const chosen = await grace.submit(path ?? '', '/password', { password: PASSWORD });
  assert.match((await grace.get(chosen.location ?? '')).body, /Your password is set\. Sign in with it/);
  const { id } = (await findUserByLogin(service.store, 'grace'))!;
  const kinds = (await listEvents(service.store, { userId: id, limit: 10 })).map(({ kind }) => kind);
  assert.deepEqual([kinds.includes('password_set'), kinds.includes('password_changed')], [true, false]);
  assert.equal((await submitSignIn(grace, 'grace')).location, '/');
  const mailed = await client.readRefusal(
    client.submit('/admin/users', '/admin/users', { ...given, login: 'x', email: 'x@example.org', way: 'mail' }),
  );
  assert.deepEqual([mailed.status, mailed.body.includes('this service sends no mail')], [422, true]);
});
