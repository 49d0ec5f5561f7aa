import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { createFormClient } from '../../../test/support/form-client.ts';
import {
  addUser,
  openAs,
  PASSWORD,
  type PageService,
  servePages,
  submitSignIn,
} from '../../../test/support/page-service.ts';
import { findReasonToSkipMail, startSmtpServer } from '../../../test/support/smtp-server.ts';
import { parseConfig } from '../../config/config.ts';
import { sendDueMails } from '../../mail/mail-worker.ts';
import { createMailer } from '../../mail/mailer.ts';
import { openSmtp } from '../../mail/smtp.ts';
import { COMMAND_LINE } from '../../operations/operation.ts';
import { createLog } from '../../telemetry/log.ts';
import { setLanguageStatement } from '../account-pages/language-store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { verifyEmail } from '../accounts/email-store.ts';
import { disableUserStatement, findUserByLogin } from '../accounts/user-store.ts';
import { invitePerson } from '../administration/invite-people.ts';
import { resetPassword, setEmail } from '../administration/manage-people.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';

const FORGOT = '/forgot-password';
const NEW_PASSWORD = 'staple battery horse';

describe('with a mail server', { skip: findReasonToSkipMail() }, async () => {
  const server = await startSmtpServer();
  after(() => server[Symbol.asyncDispose]());
  const settings = {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(server.port),
    SMTP_SECURITY: 'none',
    MAIL_FROM: 't@a.b',
  };
  const smtp = openSmtp(parseConfig(settings).mail)!;

  /** The mails that were caused since the last call. */
  async function readMails({ store, cipher, world }: PageService) {
    const before = server.mails.length;
    const log = createLog('silent');
    await sendDueMails(
      { store, cipher, world: { ...world, isClockTrusted: () => true }, log, smtp },
      new AbortController().signal,
    );
    return server.mails.slice(before);
  }

  async function addVerified(service: PageService, login: string) {
    const user = await addUser(service, login);
    await verifyEmail(service.store, { userId: user.id, email: `${login}@example.org`, statements: [] });
    return (await findUserByLogin(service.store, login))!;
  }

  const ask = (service: PageService, who: string, client = createFormClient(service.url)) =>
    client.submit(FORGOT, FORGOT, { who });

  /** Mails that became due together are sent in any order. */
  const findLinkMail = (mails: readonly { readonly subject: string; readonly text: string }[]) =>
    mails.find(({ subject }) => subject === 'Choose a new password');

  function readLink(mail: { readonly text: string } | undefined, { url }: PageService): string {
    const [, path] = new RegExp(`${url}(/password\\?token=[\\w-]+)`).exec(mail?.text ?? '') ?? [];
    assert.ok(path, mail?.text);
    return path;
  }

  test('a forgotten password is replaced by the link of a mail, which works once and ends what the old one allowed', async (t) => {
    const service = await servePages(t, { withMail: true });
    const ada = await addVerified(service, 'ada');
    const signedIn = await openAs(service, 'ada');
    assert.match((await signedIn.get('/sign-in')).body, /href="\/forgot-password"/);
    assert.equal((await ask(service, 'ADA@example.org')).location, `${FORGOT}?done=sent`);
    const [mail, ...others] = await readMails(service);
    assert.deepEqual([mail?.to, mail?.subject, others.length], [['ada@example.org'], 'Choose a new password', 0]);
    const path = readLink(mail, service);

    const client = createFormClient(service.url);
    const weak = await client.readRefusal(client.submit(path, '/password', { password: 'short' }));
    assert.deepEqual([weak.status, weak.body.includes('must be 10 to 256 characters')], [422, true]);
    const chosen = await client.submit(path, '/password', { password: NEW_PASSWORD });
    assert.equal(chosen.location, '/sign-in?done=password_changed&login_hint=ada');
    assert.match((await client.get(chosen.location ?? '')).body, /Your password was changed/);

    assert.equal((await signedIn.get('/account')).status, 303, 'the session has ended');
    assert.equal((await createFormClient(service.url).get(path)).status, 403, 'the link works once');
    assert.equal((await submitSignIn(createFormClient(service.url), 'ada', NEW_PASSWORD)).status, 303);
    assert.deepEqual(
      (await readMails(service)).map(({ subject }) => subject),
      ['Your password was changed'],
    );
    const events = await listEvents(service.store, { userId: ada.id, limit: 20 });
    const changed = events.find(({ kind }) => kind === 'password_changed');
    assert.deepEqual(changed?.details, { by: 'link (forgotten)', tokens_revoked: false });
    assert.ok(events.some(({ kind }) => kind === 'password_forgotten'));
  });

  test('a mail is in the language that the person chose, and the page in that of the browser', async (t) => {
    const service = await servePages(t, { withMail: true });
    const { id } = await addVerified(service, 'ada');
    await service.store.writeAll([setLanguageStatement(id, 'zh-CN')]);
    await ask(service, 'ada');
    const mail = (await readMails(service)).find(({ subject }) => subject === '设置新密码');
    assert.match(mail?.text ?? '', /申请了新密码[\s\S]*一小时内有效/);
    const response = await fetch(`${service.url}/forgot-password?done=sent`);
    assert.match(await response.text(), /<html lang="en">[\s\S]*a mail is on its way/);
  });

  test('who asks cannot see whether there is an account', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addVerified(service, 'ada');
    const off = await addVerified(service, 'off');
    await service.store.writeAll([disableUserStatement(off.id, service.world.nowMs())]);
    await addUser(service, 'unverified');
    const answers = [];
    for (const who of ['ada', 'no-such-login', 'none@example.org', 'off', 'unverified', 'unverified@example.org', '']) {
      const { status, location, body, cookies } = await ask(service, who);
      answers.push({ status, location, body, cookies: cookies.length });
    }
    assert.equal(new Set(answers.map((answer) => JSON.stringify(answer))).size, 1);
    assert.deepEqual(
      (await readMails(service)).map(({ to }) => to),
      [['ada@example.org']],
    );
  });

  test('an address or a password that a token without all rights set opens no account of an administrator', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addUser(service, 'root', true);
    await addUser(service, 'ada');
    const helper = { userId: '1'.repeat(24), login: 'helper', isAdmin: false };
    await setEmail(service, helper, { login: 'ada', email: 'helper@evil.example' });
    await resetPassword(service, helper, { login: 'ada', password: NEW_PASSWORD, deleteTokens: false });
    const helperAsAda = createFormClient(service.url);
    assert.equal((await submitSignIn(helperAsAda, 'ada', NEW_PASSWORD)).location, '/');

    const root = await openAs(service, 'root');
    const path = '/admin/users/ada/make-admin';
    assert.match((await root.get(path)).body, /may have set a way into this account/);
    assert.equal((await root.submit(path, path, {})).location, '/admin/users/ada?done=ended-access');
    assert.match((await root.get('/admin/users/ada?done=ended-access')).body, /make a link for a new password/);

    await ask(service, 'ada');
    await ask(service, 'helper@evil.example');
    assert.deepEqual(await readMails(service), []);
    assert.equal((await helperAsAda.get('/account')).status, 303, 'the session has ended');
    const again = createFormClient(service.url);
    assert.equal((await again.readRefusal(submitSignIn(again, 'ada', NEW_PASSWORD))).status, 422);
  });

  test('asking again and again has to wait, for an account that exists and for one that does not', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addVerified(service, 'ada');
    for (const who of ['ada', 'no-such-login']) {
      for (let count = 0; count < 3; count += 1)
        assert.equal((await ask(service, who)).location, `${FORGOT}?done=sent`);
      const client = createFormClient(service.url);
      const refused = await client.readRefusal(ask(service, who, client));
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1'], who);
      assert.match(refused.body, new RegExp(`value="${who}"`));
    }
    assert.equal((await readMails(service)).length, 3);
  });

  test('a link is worthless after its hour, after another new password, and while its person is disabled', async (t) => {
    const service = await servePages(t, { withMail: true });
    const ada = await addVerified(service, 'ada');
    await ask(service, 'ada');
    await ask(service, 'ada');
    const [first, second] = (await readMails(service)).map((mail) => readLink(mail, service));
    const client = createFormClient(service.url);
    await client.submit(first ?? '', '/password', { password: NEW_PASSWORD });
    assert.equal((await client.get(second ?? '')).status, 403);
    service.world.moveMs(2 * 3_600_000);
    await ask(service, 'ada');
    const third = readLink(findLinkMail(await readMails(service)), service);
    assert.equal((await client.get(third)).status, 200);
    service.world.moveMs(3_600_001);
    assert.equal((await client.get(third)).status, 403);
    await ask(service, 'ada');
    const fourth = readLink(findLinkMail(await readMails(service)), service);
    await service.store.writeAll([disableUserStatement(ada.id, service.world.nowMs())]);
    assert.equal((await client.get(fourth)).status, 403);
  });

  test('two browsers with one link: one of them sets the password', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addVerified(service, 'ada');
    await ask(service, 'ada');
    const path = readLink((await readMails(service))[0], service);
    const clients = [createFormClient(service.url), createFormClient(service.url)];
    const answers = await Promise.all(
      clients.map((client, index) => client.submit(path, '/password', { password: `${NEW_PASSWORD} ${index}` })),
    );
    const winners = answers.filter(({ location }) => location?.startsWith('/sign-in?done=password_changed'));
    assert.equal(winners.length, 1);
  });

  test('the personal access tokens go when the person asks for it', async (t) => {
    const service = await servePages(t, { withMail: true });
    const { id: userId } = await addVerified(service, 'ada');
    const token = { userId, name: 'Backup', scopes: ['all_user'], expiresAtMs: undefined } as const;
    await createPersonalToken(service.store, service.world, token);
    for (const fields of [{}, { delete_tokens: '1' }]) {
      await ask(service, 'ada');
      const path = readLink(findLinkMail(await readMails(service)), service);
      await createFormClient(service.url).submit(path, '/password', { password: NEW_PASSWORD, ...fields });
      assert.equal((await listPersonalTokens(service.store, userId)).length, 'delete_tokens' in fields ? 0 : 1);
    }
  });

  test('an invited person gets a mail, chooses a password, and signs in', async (t) => {
    const service = await servePages(t, { withMail: true });
    const root = await addUser(service, 'root', true);
    const client = await openAs(service, 'root');
    const given = { login: 'grace', name: 'Grace', email: 'grace@example.org', way: 'mail' };
    assert.equal((await client.submit('/admin/users', '/admin/users', given)).location, '/admin/users?done=invited');
    const [mail] = await readMails(service);
    assert.deepEqual([mail?.to, mail?.subject], [['grace@example.org'], `You are invited to ${service.url}`]);
    const path = readLink(mail, service);
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
    await addVerified(service, 'ada');
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
    readLink(mail, service);
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
