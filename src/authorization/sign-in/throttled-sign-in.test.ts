/** Strangers who guess a password must not lock its owner out, and must not guess without end. */
import assert from 'node:assert/strict';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { createFormClient, type FormClient } from '../../../test/support/network/form-client.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Store } from '../../database/store.ts';
import { isFailure } from '../../errors.ts';
import { checkAttempt, forgiveAttempt } from '../accounts/attempt-store.ts';
import { attemptSubjects } from '../accounts/sign-in-throttle.ts';
import { createUser } from '../accounts/user-store.ts';
import { hashPassword, isPassword } from './password.ts';

const PASSWORD = 'correct horse battery';
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

async function startWithAda(store: Store): Promise<AuthorizationServer> {
  const server = await startAuthorizationServer(store, { isStill: true });
  const passwordHash = await hashPassword(PASSWORD);
  const ada = { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash };
  await createUser(store, server.world, ada);
  return server;
}

function openAt(server: AuthorizationServer, address: string, jar?: Map<string, string>): FormClient {
  return createFormClient(server.url, jar, { 'x-forwarded-for': address });
}

/** 303: signed in. The page of a refusal has 422 for a checked wrong password, and 429 for a wait. */
async function tryPassword(client: FormClient, password: string): Promise<number> {
  return (await client.readOutcome(client.submit('/sign-in', '/sign-in', { login: 'ada', password }))).status;
}

/** Guesses from each address in turn until all of them have to wait; returns how many guesses were checked. */
async function guessUntilAllWait(server: AuthorizationServer, addresses: readonly string[]): Promise<number> {
  let judged = 0;
  let guessing = addresses.map((address) => openAt(server, address));
  while (guessing.length > 0) {
    const still: FormClient[] = [];
    for (const client of guessing) {
      if ((await tryPassword(client, 'wrong')) !== 422) continue;
      judged += 1;
      still.push(client);
    }
    guessing = still;
  }
  return judged;
}

forEachEngine(
  'thirty networks that guess do not keep the owner out, at a clean address or on a known device',
  async (store) => {
    await using server = await startWithAda(store);
    const device = openAt(server, '198.51.100.7');
    assert.equal(await tryPassword(device, PASSWORD), 303);
    const bots = Array.from({ length: 30 }, (_, index) => `2001:db8:${index.toString(16)}::1`);
    assert.ok((await guessUntilAllWait(server, bots)) >= 59, 'as many as kept the owner out before');
    for (let slot = 0; slot < 5; slot += 1) {
      // One of the guessers takes the next slot.
      server.advance(MINUTE_MS / 2);
      await tryPassword(openAt(server, bots[slot] ?? ''), 'wrong');
      assert.equal(await tryPassword(openAt(server, `203.0.113.${slot + 1}`), PASSWORD), 303, 'a clean address');
    }
    assert.equal(await tryPassword(openAt(server, bots[0] ?? ''), PASSWORD), 429, 'a guesser waits');
    const known = new Map([...device.jar].filter(([name]) => name.endsWith('device')));
    assert.equal(
      await tryPassword(openAt(server, bots[0] ?? '', known), PASSWORD),
      303,
      'a known device at their address',
    );
  },
);

forEachEngine('all /64s of one /48 are one guesser', async (store) => {
  await using server = await startWithAda(store);
  const bots = Array.from({ length: 30 }, (_, index) => `2001:db8:0:${index.toString(16)}::1`);
  assert.ok((await guessUntilAllWait(server, bots)) <= 10);
});

forEachEngine('a known device waits for its own failures, and is known for its own account only', async (store) => {
  await using server = await startWithAda(store);
  const passwordHash = await hashPassword(PASSWORD);
  const eve = { login: 'eve', name: 'Eve', email: null, isAdmin: false, passwordHash };
  await createUser(store, server.world, eve);
  const device = openAt(server, '198.51.100.7');
  assert.equal(await tryPassword(device, PASSWORD), 303);
  const statuses = [];
  for (let guess = 0; guess < 6; guess += 1) statuses.push(await tryPassword(device, 'wrong'));
  assert.deepEqual(statuses, [422, 422, 422, 422, 422, 429]);
  const stranger = openAt(server, '198.51.100.8');
  await stranger.submit('/sign-in', '/sign-in', { login: 'eve', password: PASSWORD });
  assert.ok([...stranger.jar.keys()].some((name) => name.endsWith('device')));
  const guesses = [];
  for (let guess = 0; guess < 6; guess += 1) guesses.push(await tryPassword(stranger, 'wrong'));
  assert.equal(guesses.at(-1), 429);
  const elsewhere = openAt(server, '198.51.100.8');
  assert.equal(
    await tryPassword(elsewhere, PASSWORD),
    429,
    'counted for the address, not for the device of another account',
  );
});

/** How many of these networks' guesses are checked if each network guesses until it has to wait. */
async function countJudged(store: Store, networks: number, nowMs: number): Promise<number> {
  let judged = 0;
  for (let network = 0; network < networks; network += 1) {
    const address = `10.${network >> 16}.${(network >> 8) & 255}.${network & 255}`;
    const subjects = attemptSubjects({ kind: 'password', account: 'ada', address });
    while (await isJudged(store, subjects, nowMs)) judged += 1;
  }
  return judged;
}

async function isJudged(store: Store, subjects: ReturnType<typeof attemptSubjects>, nowMs: number): Promise<boolean> {
  try {
    await checkAttempt(store, { subjects, nowMs });
    return true;
  } catch (error) {
    if (isFailure(error) && error.code === 'too_many') return false;
    throw error;
  }
}

forEachEngine('an account takes 1,000 wrong passwords from strangers at once, and 720 more a day', async (store) => {
  const startMs = 100 * DAY_MS;
  assert.equal(await countJudged(store, 400, startMs), 1000);
  let nextDay = 0;
  for (let hour = 1; hour <= 24; hour += 1) nextDay += await countJudged(store, 60, startMs + (hour * DAY_MS) / 24);
  assert.ok(nextDay <= 720 + 10, `${nextDay}`);
  const onDevice = attemptSubjects({ kind: 'password', account: 'ada', address: '10.0.0.1', deviceId: 'known' });
  assert.equal(await isJudged(store, onDevice, startMs + DAY_MS), true);
});

forEachEngine('a day without an attempt forgets all failures, also before a sweep', async (store) => {
  const subjects = attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.1' });
  let nowMs = 100 * DAY_MS;
  for (let failure = 1; failure <= 14; failure += 1, nowMs += 20 * MINUTE_MS)
    assert.equal(await isJudged(store, subjects, nowMs), true);
  nowMs += DAY_MS;
  for (let failure = 1; failure <= 5; failure += 1) assert.equal(await isJudged(store, subjects, nowMs), true);
  assert.equal(await isJudged(store, subjects, nowMs), false);
});

forEachEngine('a success gives strangers no new guesses', async (store) => {
  const nowMs = 100 * DAY_MS;
  assert.equal(await countJudged(store, 400, nowMs), 1000);
  const owner = attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.1' });
  const later = nowMs + 5 * MINUTE_MS;
  assert.equal(await isJudged(store, owner, later), true);
  await forgiveAttempt(store, owner);
  assert.ok((await countJudged(store, 450, later)) <= 5);
});

/** Fills the hash queue from as many networks as it takes, each of which retries at once, until `work` ends. */
async function duringFlood<T>(work: () => Promise<T>): Promise<T> {
  let isOver = false;
  const guess = async (network: string) => {
    while (!isOver) {
      await isPassword(null, 'wrong', { key: network, isKnown: false }).catch(() => {});
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const guessers = Array.from({ length: 100 }, (_, index) => guess(`flood ${index}`));
  try {
    return await work();
  } finally {
    isOver = true;
    await Promise.all(guessers);
  }
}

forEachEngine('a flood of passwords is refused with 503, and lets a known device in', async (store) => {
  await using server = await startWithAda(store);
  const device = openAt(server, '198.51.100.7');
  assert.equal(await tryPassword(device, PASSWORD), 303);
  const known = new Map([...device.jar].filter(([name]) => name.endsWith('device')));
  await duringFlood(async () => {
    const stranger = openAt(server, '203.0.113.9');
    const guess = (client: FormClient) =>
      client.readRefusal(client.submit('/sign-in', '/sign-in', { login: 'grace', password: 'wrong' }));
    let answer = await guess(stranger);
    // Between two hashes a place may be free. A checked guess counts, so each try is from another network.
    for (let host = 10; answer.status !== 503; host += 1) answer = await guess(openAt(server, `203.0.113.${host}`));
    assert.equal(answer.headers.get('retry-after'), '2');
    assert.match(answer.body, /Too many people are signing in right now/);
    assert.equal(await tryPassword(openAt(server, '198.51.100.7', known), PASSWORD), 303);
  });
});
