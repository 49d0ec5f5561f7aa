/** The machine's clock jumps and is corrected: valid credentials stay valid, and expired ones still expire. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import {
  type AuthorizationServer,
  callApi,
  obtainCode,
  obtainTokens,
  postForm,
  registerApplication,
  signIn,
} from '../../../test/support/authorization/authorization-server.ts';
import { type Bench, type Case, checkConformance } from '../../../test/support/authorization/conformance.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { withSteadyClock } from '../../steady-clock.ts';
import { hashPassword } from '../sign-in/password.ts';
import { confirmTotpStatement, offerTotpSeed } from './totp-store.ts';
import { createUser } from './user-store.ts';

const HOUR_MS = 3_600_000;
const PASSWORD = 'correct horse battery';
const SEED = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

/** The clock is wrong for half a second. */
async function jumpAndReturn({ server }: Bench, ms: number): Promise<void> {
  server.stepClock(ms);
  await callApi(server, 'none');
  server.advance(500);
  await callApi(server, 'none');
  server.stepClock(-ms);
}

/** The clock is wrong for long enough to be trusted, and is then corrected for good. */
async function beWrongForLong({ server }: Bench, meanwhile: () => Promise<void>): Promise<void> {
  server.stepClock(HOUR_MS);
  await settle(server);
  await meanwhile();
  server.stepClock(-HOUR_MS);
  await settle(server);
}

/** Every request reads the clock. */
async function settle(server: AuthorizationServer): Promise<void> {
  await callApi(server, 'none');
  server.advance(61_000);
  await callApi(server, 'none');
}

let people = 0;

async function preparePerson({ server }: Bench, { hasTotp }: { readonly hasTotp: boolean }) {
  const { store, world } = server;
  const passwordHash = await hashPassword(PASSWORD);
  const login = `clock${++people}`;
  const user = await createUser(store, world, { login, name: 'Ada', email: null, isAdmin: false, passwordHash });
  if (hasTotp) {
    const cipher = createSecretCipher([new Uint8Array(32).fill(7)], world);
    await offerTotpSeed(store, cipher, { userId: user.id, seed: SEED });
    await store.writeAll([confirmTotpStatement({ userId: user.id, timeStep: 1, nowMs: 1 })]);
  }
  return { user, cookie: await signIn(server, user), login };
}

/** Signs in with the digits of a phone whose clock is right. */
async function signInWithPhone({ url, world }: AuthorizationServer, login: string, aheadMs = 0): Promise<number> {
  const client = createFormClient(url);
  const first = await client.submit('/sign-in', '/sign-in', { login, password: PASSWORD });
  assert.equal(first.location, '/sign-in/second-step');
  const totp = new TOTP({ secret: Secret.fromBase32(SEED), period: 30 });
  const code = totp.generate({ timestamp: world.nowMs() + aheadMs });
  return (await client.readOutcome(client.submit('/sign-in/second-step', '/sign-in/second-step', { code }))).status;
}

async function exchangeAfter(bench: Bench, waitMs: number, between: () => Promise<void>): Promise<number> {
  const { server } = bench;
  const person = await preparePerson(bench, { hasTotp: false });
  const { clientId, clientSecret } = await registerApplication(server);
  const client = { client_id: clientId, client_secret: clientSecret };
  const code = await obtainCode(server, person, { client_id: clientId, scope: 'all_user' });
  await between();
  server.advance(waitMs);
  const fields = { grant_type: 'authorization_code', code, ...client };
  return (await postForm(`${server.url}/oauth/token`, fields)).status;
}

const cases: Case[] = [
  [
    'a jump of an hour that is taken back refuses no right TOTP code',
    async (bench) => {
      const { login } = await preparePerson(bench, { hasTotp: true });
      await jumpAndReturn(bench, HOUR_MS);
      assert.equal(await signInWithPhone(bench.server, login), 303);
    },
  ],
  [
    'a code expires after a minute whatever the clock did meanwhile',
    async (bench) => {
      assert.equal(await exchangeAfter(bench, 61_000, () => jumpAndReturn(bench, HOUR_MS)), 400);
      assert.equal(await exchangeAfter(bench, 61_000, () => jumpAndReturn(bench, -HOUR_MS)), 400);
      assert.equal(await exchangeAfter(bench, 5_000, () => jumpAndReturn(bench, HOUR_MS)), 200);
      assert.equal(await exchangeAfter(bench, 5_000, () => jumpAndReturn(bench, -HOUR_MS)), 200);
    },
  ],
  [
    'after an hour ahead and a correction a right TOTP code is taken, also when digits of the wrong hour were spent',
    async (bench) => {
      const { server } = bench;
      const { login } = await preparePerson(bench, { hasTotp: true });
      await beWrongForLong(bench, async () => assert.equal(await signInWithPhone(server, login), 303));
      assert.equal(await signInWithPhone(server, login), 303);
    },
  ],
  [
    'a code of the wrong hour is refused after the correction, and codes expire again',
    async (bench) => {
      const { server } = bench;
      const person = await preparePerson(bench, { hasTotp: false });
      const { clientId, clientSecret } = await registerApplication(server);
      let code = '';
      await beWrongForLong(bench, async () => {
        code = await obtainCode(server, person, { client_id: clientId, scope: 'all_user' });
      });
      const fields = { grant_type: 'authorization_code', code, client_id: clientId, client_secret: clientSecret };
      assert.equal((await postForm(`${server.url}/oauth/token`, fields)).status, 400);
      assert.equal(await exchangeAfter(bench, 5_000, async () => {}), 200);
      assert.equal(await exchangeAfter(bench, 61_000, async () => {}), 400);
    },
  ],
  [
    'a wait that began in the wrong hour ends',
    async (bench) => {
      const { server } = bench;
      const { login } = await preparePerson(bench, { hasTotp: false });
      const client = createFormClient(server.url, undefined, { 'x-forwarded-for': '192.0.2.99' });
      const attempt = async (password: string) =>
        (await client.readOutcome(client.submit('/sign-in', '/sign-in', { login, password }))).status;
      await beWrongForLong(bench, async () => {
        for (let guess = 0; guess < 5; guess += 1) assert.equal(await attempt('wrong'), 422);
        assert.equal(await attempt(PASSWORD), 429);
      });
      await attempt(PASSWORD);
      server.advance(2_000);
      assert.equal(await attempt(PASSWORD), 303);
    },
  ],
  [
    'a device that polled while the clock was wrong is not slowed down until that time',
    async (bench) => {
      const { server } = bench;
      const { clientId } = await registerApplication(server, {
        isPublic: true,
        redirectUris: [],
        grantTypes: ['device_code'],
      });
      const { json } = await postForm(`${server.url}/oauth/device`, { client_id: clientId });
      const poll = async () => {
        const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
        const fields = { grant_type, client_id: clientId, device_code: String(json.device_code) };
        return (await postForm(`${server.url}/oauth/token`, fields)).json.error;
      };
      // Ten minutes: the code must not expire meanwhile.
      server.stepClock(600_000);
      await settle(server);
      assert.equal(await poll(), 'authorization_pending');
      server.stepClock(-600_000);
      await settle(server);
      assert.equal(await poll(), 'authorization_pending');
    },
  ],
  [
    'tokens of before a jump work during it and after it',
    async (bench) => {
      const { server } = bench;
      const person = await preparePerson(bench, { hasTotp: false });
      const { access_token: token } = await obtainTokens(server, person, await registerApplication(server));
      server.stepClock(400 * 24 * HOUR_MS);
      assert.equal(await callApi(server, token), 200);
      server.stepClock(-400 * 24 * HOUR_MS);
      assert.equal(await callApi(server, token), 200);
    },
  ],
];

checkConformance('a clock that jumps', cases);

test('withSteadyClock() follows small corrections at once, and a jump once it has lasted a minute', () => {
  const still = createStillWorld(1_000_000);
  let stepMs = 0;
  const world = withSteadyClock({ ...still, nowMs: () => still.nowMs() + stepMs });
  stepMs = 500;
  assert.equal(world.nowMs(), 1_000_500);
  stepMs = 5_000;
  assert.equal(world.nowMs(), 1_000_500, 'not believed yet');
  still.moveMs(59_000);
  assert.equal(world.nowMs(), 1_059_500, 'time goes on');
  stepMs = -5_000;
  assert.equal(world.nowMs(), 1_059_500, 'another jump begins another minute');
  still.moveMs(30_000);
  assert.equal(world.nowMs(), 1_089_500);
  still.moveMs(30_000);
  assert.equal(world.nowMs(), 1_114_000, 'what the machine has said for a minute');
});

test('withSteadyClock() trusts a clock that has not jumped for ten minutes', () => {
  const still = createStillWorld(1_000_000);
  let stepMs = 0;
  const world = withSteadyClock({ ...still, nowMs: () => still.nowMs() + stepMs });
  const trustAfter = (ms: number): boolean => {
    still.moveMs(ms);
    world.nowMs();
    return world.isClockTrusted();
  };
  assert.equal(trustAfter(599_999), false, 'the start');
  assert.equal(trustAfter(1), true);
  stepMs = 3_600_000;
  assert.equal(trustAfter(1), false, 'a jump');
  stepMs = 0;
  assert.equal(trustAfter(1), true, 'a jump that was taken back');
  stepMs = 3_600_000;
  assert.equal(trustAfter(1), false);
  assert.equal(trustAfter(60_000), false, 'a jump that is believed');
  assert.equal(trustAfter(599_999), false);
  assert.equal(trustAfter(1), true);
});

test('withSteadyClock() notices a jump, and its end, when it is only asked whether the clock is trusted', () => {
  const still = createStillWorld(1_000_000);
  let stepMs = 3_600_000;
  const world = withSteadyClock({ ...still, nowMs: () => still.nowMs() + stepMs });
  const trustAfter = (ms: number): boolean => {
    still.moveMs(ms);
    return world.isClockTrusted();
  };
  assert.equal(trustAfter(60_000), false, 'the start');
  stepMs = 0;
  assert.equal(trustAfter(60_000), false, 'the correction');
  assert.equal(trustAfter(60_000), false, 'the correction is believed');
  assert.equal(trustAfter(599_999), false, 'ten minutes after the start, and not after the correction');
  assert.equal(trustAfter(1), true);
  assert.equal(world.nowMs(), still.nowMs());
  stepMs = 3_600_000;
  assert.equal(trustAfter(1), false, 'a jump');
  stepMs = 0;
  assert.equal(trustAfter(1), true, 'a jump that was taken back');
});
