/** People who forgot their password. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addVerifiedUser, readPasswordLink, useMailServer } from '../../../test/support/mail/mail-server.ts';
import { findReasonToSkipMail } from '../../../test/support/mail/smtp-server.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import {
  addUser,
  openAs,
  type PageService,
  servePages,
  submitSignIn,
} from '../../../test/support/pages/page-service.ts';
import { setLanguageStatement } from '../account-pages/language-store.ts';
import { listEvents } from '../accounts/audit-store.ts';
import { disableUserStatement } from '../accounts/user-store.ts';
import { resetPassword, setEmail } from '../administration/manage-people.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';
import { listPersonalTokens } from '../tokens/personal-token-store.ts';

const FORGOT = '/forgot-password';
const NEW_PASSWORD = 'staple battery horse';

describe('with a mail server', { skip: findReasonToSkipMail() }, async () => {
  const { readMails } = await useMailServer();

  const ask = (service: PageService, who: string, client = createFormClient(service.url)) =>
    client.submit(FORGOT, FORGOT, { who });

  /** Mails that became due together are sent in any order. */
  const findLinkMail = (mails: readonly { readonly subject: string; readonly text: string }[]) =>
    mails.find(({ subject }) => subject === 'Choose a new password');

  test('a forgotten password is replaced by the link of a mail, which works once and ends what the old one allowed', async (t) => {
    const service = await servePages(t, { withMail: true });
    const ada = await addVerifiedUser(service, 'ada');
    const signedIn = await openAs(service, 'ada');
    assert.match((await signedIn.get('/sign-in')).body, /href="\/forgot-password"/);
    assert.equal((await ask(service, 'ADA@example.org')).location, `${FORGOT}?done=sent`);
    const [mail, ...others] = await readMails(service);
    assert.deepEqual([mail?.to, mail?.subject, others.length], [['ada@example.org'], 'Choose a new password', 0]);
    const path = readPasswordLink(mail, service);

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
    const { id } = await addVerifiedUser(service, 'ada');
    await service.store.writeAll([setLanguageStatement(id, 'zh-CN')]);
    await ask(service, 'ada');
    const mail = (await readMails(service)).find(({ subject }) => subject === '设置新密码');
    assert.match(mail?.text ?? '', /申请了新密码[\s\S]*一小时内有效/);
    const response = await fetch(`${service.url}/forgot-password?done=sent`);
    assert.match(await response.text(), /<html lang="en">[\s\S]*a mail is on its way/);
  });

  test('who asks cannot see whether there is an account', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addVerifiedUser(service, 'ada');
    const off = await addVerifiedUser(service, 'off');
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
    assert.match((await root.get(path)).body, /may have set a way to sign in to this account/);
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
    await addVerifiedUser(service, 'ada');
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
    const ada = await addVerifiedUser(service, 'ada');
    await ask(service, 'ada');
    await ask(service, 'ada');
    const [first, second] = (await readMails(service)).map((mail) => readPasswordLink(mail, service));
    const client = createFormClient(service.url);
    await client.submit(first ?? '', '/password', { password: NEW_PASSWORD });
    assert.equal((await client.get(second ?? '')).status, 403);
    service.world.moveMs(2 * 3_600_000);
    await ask(service, 'ada');
    const third = readPasswordLink(findLinkMail(await readMails(service)), service);
    assert.equal((await client.get(third)).status, 200);
    service.world.moveMs(3_600_001);
    assert.equal((await client.get(third)).status, 403);
    await ask(service, 'ada');
    const fourth = readPasswordLink(findLinkMail(await readMails(service)), service);
    await service.store.writeAll([disableUserStatement(ada.id, service.world.nowMs())]);
    assert.equal((await client.get(fourth)).status, 403);
  });

  test('two browsers with one link: one of them sets the password', async (t) => {
    const service = await servePages(t, { withMail: true });
    await addVerifiedUser(service, 'ada');
    await ask(service, 'ada');
    const path = readPasswordLink((await readMails(service))[0], service);
    const clients = [createFormClient(service.url), createFormClient(service.url)];
    const answers = await Promise.all(
      clients.map((client, index) => client.submit(path, '/password', { password: `${NEW_PASSWORD} ${index}` })),
    );
    const winners = answers.filter(({ location }) => location?.startsWith('/sign-in?done=password_changed'));
    assert.equal(winners.length, 1);
  });

  test('the personal access tokens go when the person asks for it', async (t) => {
    const service = await servePages(t, { withMail: true });
    const { id: userId } = await addVerifiedUser(service, 'ada');
    const token = { userId, name: 'Backup', scopes: ['all_user'], expiresAtMs: undefined } as const;
    await createPersonalToken(service.store, service.world, token);
    for (const fields of [{}, { delete_tokens: '1' }]) {
      await ask(service, 'ada');
      const path = readPasswordLink(findLinkMail(await readMails(service)), service);
      await createFormClient(service.url).submit(path, '/password', { password: NEW_PASSWORD, ...fields });
      assert.equal((await listPersonalTokens(service.store, userId)).length, 'delete_tokens' in fields ? 0 : 1);
    }
  });
});
