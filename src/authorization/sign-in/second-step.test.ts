import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TOTP } from 'otpauth';
import { createFormClient, type FormClient, readHidden } from '../../../test/support/network/form-client.ts';
import {
  addUser,
  openAs,
  PASSWORD,
  type PageService,
  servePages,
  submitSignIn,
} from '../../../test/support/pages/page-service.ts';
import { statement } from '../../database/store.ts';

test('with an authenticator app the password alone does not sign in', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const { seed, codes } = await turnOnTotp(service, await openAs(service, 'ada'));
  const client = createFormClient(service.url);
  const first = await submitSignIn(client, 'ada', PASSWORD, '/sign-in?return_to=%2Faccount');
  assert.equal(first.location, '/sign-in/second-step?return_to=%2Faccount');
  assert.equal((await client.get('/account')).status, 303);
  const step = (code: string) => client.submit(first.location!, '/sign-in/second-step', { code });
  const refused = await client.readRefusal(step('000000'));
  assert.equal(refused.status, 422);
  assert.match(refused.body, /This code is wrong, or was used already/);
  assert.match(refused.body, /name="return_to" value="\/account"/);
  assert.doesNotMatch(refused.body, /000000/);
  service.world.moveMs(30_000);
  const digits = digitsAt(seed, service.world.nowMs());
  const right = await step(digits);
  assert.deepEqual([right.status, right.location], [303, '/account']);
  assert.equal((await client.get('/account')).status, 200);

  const again = createFormClient(service.url);
  await submitSignIn(again, 'ada');
  const replay = await again.readRefusal(
    again.submit('/sign-in/second-step', '/sign-in/second-step', { code: digits }),
  );
  assert.equal(replay.status, 422, 'digits count once (RFC 6238 §5.2)');
  const recovery = await again.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[0]! });
  assert.equal(recovery.location, '/');
  const third = createFormClient(service.url);
  await submitSignIn(third, 'ada');
  const spent = third.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[0]! });
  assert.equal((await third.readRefusal(spent)).status, 422);
});

test('the second step is limited, ends after ten minutes, and is invalid after a new password', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const settled = await openAs(service, 'ada');
  const { codes } = await turnOnTotp(service, settled);
  const begin = async () => {
    const client = createFormClient(service.url);
    await submitSignIn(client, 'ada');
    const guess = (code: string) => client.submit('/sign-in/second-step', '/sign-in/second-step', { code });
    return { guess, readGuess: (code: string) => client.readRefusal(guess(code)) };
  };
  const { readGuess } = await begin();
  for (let count = 0; count < 5; count += 1) assert.equal((await readGuess('000000')).status, 422);
  const waits = await readGuess(codes[0]!);
  assert.deepEqual([waits.status, waits.headers.get('retry-after')], [429, '1']);
  assert.match(waits.body, /Too many attempts/);
  service.world.moveMs(24 * 3_600_000);

  const late = await begin();
  service.world.moveMs(600_000);
  assert.equal((await late.guess(codes[0]!)).location, '/sign-in');

  const overtaken = await begin();
  const fresh = createFormClient(service.url);
  await submitSignIn(fresh, 'ada');
  assert.equal((await fresh.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[1]! })).location, '/');
  const path = '/account/security';
  await fresh.submit(path, `${path}/password`, { current: PASSWORD, password: 'a new long password' });
  assert.equal((await overtaken.guess(codes[2]!)).location, '/sign-in');
});

test('turning the second step off asks for the password', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  await turnOnTotp(service, client);
  const path = '/account/security';
  assert.equal(
    (await client.readRefusal(client.submit(path, `${path}/totp/stop`, { totp_password: 'wrong' }))).status,
    422,
  );
  assert.equal((await submitSignIn(createFormClient(service.url), 'ada')).location, '/sign-in/second-step');
  assert.equal((await client.submit(path, `${path}/totp/stop`, { totp_password: PASSWORD })).status, 303);
  assert.equal((await submitSignIn(createFormClient(service.url), 'ada')).location, '/');
});

test('another way in is opened only soon after signing in', async (t) => {
  const service = await servePages(t, { hostname: 'localhost' });
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  service.world.moveMs(31 * 60_000);
  const path = '/account/security';
  const answer = await client.submit(path, `${path}/totp`, {});
  assert.equal(answer.location, '/sign-in?return_to=%2Faccount%2Fsecurity&again=yes&login_hint=ada');
  assert.equal((await client.readRefusal(client.submit(path, `${path}/passkeys/options`, {}))).status, 403);
  const shown = await client.get(path);
  assert.match(
    shown.body.replaceAll('&amp;', '&'),
    /href="\/sign-in\?return_to=%2Faccount%2Fsecurity&again=yes&login_hint=ada"/,
  );
});

test('a refused sign-in that is asked for again leads nowhere without a sign-in', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const client = await openAs(service, 'ada');
  const page = '/sign-in?return_to=%2Faccount%2Fsecurity&again=yes';
  const refusedPasskey = {
    ...readHidden((await client.get(page)).body, '/sign-in'),
    ticket: 'x',
    credential: '{"response":{}}',
  };
  const refusals = [
    client.get(page),
    client.readRefusal(submitSignIn(client, 'ada', 'a wrong password', page)),
    client.get((await client.post('/sign-in/passkey', refusedPasskey)).location ?? ''),
  ];
  for (const refused of await Promise.all(refusals)) {
    assert.match(refused.body, /This change needs a sign-in within the last half hour/);
    assert.doesNotMatch(refused.body, /href="\/account\/security"/, 'the page behind it refuses the session');
    assert.match(refused.body, /name="again" value="yes"/);
  }
  assert.match((await client.get('/sign-in?return_to=%2Faccount')).body, /href="\/account"/, 'this page does not');
  assert.equal((await submitSignIn(client, 'ada', PASSWORD, page)).location, '/account/security');
});

test('the way back of a second step is kept by a wrong code and by the link back', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  await turnOnTotp(service, await openAs(service, 'ada'));
  const client = createFormClient(service.url);
  const page = '/sign-in?return_to=%2Faccount%2Fsecurity&again=yes';
  const step = (await submitSignIn(client, 'ada', PASSWORD, page)).location ?? '';
  const wrong = await client.readRefusal(client.submit(step, '/sign-in/second-step', { code: '000000' }));
  assert.match(wrong.body, /href="\/sign-in\?return_to=%2Faccount%2Fsecurity&amp;again=yes"/);
});

test('recovery codes that cannot be shown are not renewed: those that the person has stay good', async (t) => {
  const service = await servePages(t);
  await addUser(service, 'ada');
  const settled = await openAs(service, 'ada');
  const { codes } = await turnOnTotp(service, settled);
  const path = '/account/security';
  const rename = (from: string, to: string) =>
    service.store.write(statement(`test-rename-${from}`, `ALTER TABLE ${from} RENAME TO ${to}`));
  await rename('tickets', 'tickets_away');
  const renewed = await settled.submit(path, `${path}/recovery-codes`, { recovery_password: PASSWORD });
  assert.equal((await settled.readRefusal(renewed)).status, 500);
  await rename('tickets_away', 'tickets');
  const client = createFormClient(service.url);
  await submitSignIn(client, 'ada');
  const entered = await client.submit('/sign-in/second-step', '/sign-in/second-step', { code: codes[0]! });
  assert.equal(entered.location, '/');
});

async function turnOnTotp(service: PageService, client: FormClient) {
  const path = '/account/security';
  assert.equal((await client.submit(path, `${path}/totp`, {})).location, `${path}/totp`);
  const { body } = await client.get(`${path}/totp`);
  const seed = /id="totp-key">([A-Z2-7 ]+)</.exec(body)?.[1]?.replaceAll(' ', '') ?? '';
  assert.equal(seed.length, 32);
  const wrong = await client.readRefusal(client.submit(`${path}/totp`, `${path}/totp/confirm`, { code: '000000' }));
  assert.equal(wrong.status, 422);
  const code = digitsAt(seed, service.world.nowMs());
  const on = await client.submit(`${path}/totp`, `${path}/totp/confirm`, { code });
  assert.equal(on.status, 303);
  const shown = await client.get(on.location ?? '');
  assert.equal((await client.get(on.location ?? '')).location, path, 'the codes are shown once');
  const codes = [...shown.body.matchAll(/<li><code>([^<]+)<\/code>/g)].map((match) => match[1]!);
  assert.equal(codes.length, 10);
  return { seed, codes };
}

function digitsAt(seed: string, timestamp: number): string {
  return new TOTP({ secret: seed }).generate({ timestamp });
}
