import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { sweepEnded } from '../maintenance/retention-store.ts';
import { checkAttempt, forgiveAttempt } from './attempt-store.ts';
import { auditStatement, listEvents } from './audit-store.ts';
import { findOneTimeToken, issueOneTimeToken, redeemOneTimeToken } from './one-time-token-store.ts';
import {
  createSession,
  endOtherSessionsStatement,
  endSession,
  findSession,
  listSessions,
  MAX_SESSIONS,
} from './session-store.ts';
import { attemptSubjects } from './sign-in-throttle.ts';
import { createUser, disableUserStatement, type User } from './user-store.ts';

const HOUR_MS = 3_600_000;
const world = createStillWorld();
const cipher = createSecretCipher([new Uint8Array(32).fill(7)], world);

function createAda(store: Store) {
  return createUser(store, world, { login: 'ada', name: 'Ada', email: null, isAdmin: false, passwordHash: null });
}

async function openSession(store: Store, user: User) {
  return createSession(store, world, { user, method: 'password', address: '192.0.2.1', userAgent: 'browser' });
}

forEachEngine('a sign-in beyond 100 sessions of a person ends the one that was used longest ago', async (store) => {
  const user = await createAda(store);
  const other = await createUser(store, world, { ...user, login: 'eve', passwordHash: null });
  const ofOther = await openSession(store, other);
  const [first, second] = [await openSession(store, user), await openSession(store, user)];
  for (let count = 2; count < MAX_SESSIONS; count += 1) await openSession(store, user);
  world.moveMs(HOUR_MS);
  assert.ok(await findSession(store, first.token, world.nowMs()), 'it is used');
  for (let count = 2; count < MAX_SESSIONS; count += 1) {
    world.moveMs(1);
    await openSession(store, user);
  }
  assert.ok(await findSession(store, first.token, world.nowMs()));
  assert.equal(await findSession(store, second.token, world.nowMs()), undefined);
  assert.equal((await listSessions(store, user.id, world.nowMs())).length, MAX_SESSIONS);
  assert.ok(await findSession(store, ofOther.token, world.nowMs()));
});

const countSessionsSql = statement<{ total: number }>(
  'test-count-sessions',
  'SELECT COUNT(*) AS total FROM sessions WHERE user_id = $1',
);

forEachEngine('sign-ins at once, by two processes, leave no session too many', async (store, { openAnother }) => {
  const user = await createAda(store);
  const stores = [store, await openAnother()];
  const signIns = Array.from({ length: MAX_SESSIONS + 60 }, (_, index) => openSession(stores[index % 2]!, user));
  await Promise.all(signIns);
  assert.deepEqual(await store.read(countSessionsSql, [user.id]), [{ total: MAX_SESSIONS }]);
});

forEachEngine('sessions from a clock that was ahead give way to those of a clock that is right', async (store) => {
  const user = await createAda(store);
  const ahead = { ...world, nowMs: () => world.nowMs() + 24 * HOUR_MS };
  const signIn = { user, method: 'password', address: '192.0.2.1', userAgent: 'browser' } as const;
  for (let count = 0; count < MAX_SESSIONS; count += 1) await createSession(store, ahead, signIn);
  const [first, second] = [await openSession(store, user), await openSession(store, user)];
  assert.ok(await findSession(store, first.token, world.nowMs()));
  assert.ok(await findSession(store, second.token, world.nowMs()));
  assert.deepEqual(await store.read(countSessionsSql, [user.id]), [{ total: MAX_SESSIONS }]);
});

forEachEngine('a session is found by its token only, and the table holds no token', async (store) => {
  const user = await createAda(store);
  const { id, token } = await openSession(store, user);
  assert.deepEqual(await findSession(store, token, world.nowMs()), {
    id,
    user,
    method: 'password',
    authTimeMs: world.nowMs(),
    lastSeenAtMs: world.nowMs(),
  });
  assert.equal(await findSession(store, id, world.nowMs()), undefined);
  const rows = await store.read(statement('test-all-sessions', 'SELECT * FROM sessions'));
  assert.ok(!JSON.stringify(rows).includes(token));
});

forEachEngine('a session ends after 12 idle hours and lives on when it is seen', async (store) => {
  const user = await createAda(store);
  const { token } = await openSession(store, user);
  const startMs = world.nowMs();
  assert.ok(await findSession(store, token, startMs + 11 * HOUR_MS));
  assert.ok(await findSession(store, token, startMs + 22 * HOUR_MS));
  assert.equal(await findSession(store, token, startMs + 34 * HOUR_MS), undefined);
});

forEachEngine('a session ends 14 days after the sign-in, however often it is seen', async (store) => {
  const user = await createAda(store);
  const { token } = await openSession(store, user);
  const startMs = world.nowMs();
  for (let hour = 10; hour < 14 * 24; hour += 10)
    assert.ok(await findSession(store, token, startMs + hour * HOUR_MS), `hour ${hour}`);
  assert.equal(await findSession(store, token, startMs + 14 * 24 * HOUR_MS), undefined);
});

forEachEngine('a disabled person has no session', async (store) => {
  const user = await createAda(store);
  const { token } = await openSession(store, user);
  await store.writeAll([disableUserStatement(user.id, 1)]);
  assert.equal(await findSession(store, token, world.nowMs()), undefined);
});

forEachEngine('a session is ended by its own person only, all others at once', async (store) => {
  const user = await createAda(store);
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => openSession(store, user)));
  const end = { sessionId: first!.id, address: '-', kind: 'session_ended', nowMs: world.nowMs() } as const;
  await endSession(store, { ...end, userId: 'another person' });
  assert.equal((await listSessions(store, user.id, world.nowMs())).length, 3);
  await endSession(store, { ...end, userId: user.id });
  assert.equal(await findSession(store, first!.token, world.nowMs()), undefined);
  await store.writeAll([endOtherSessionsStatement(user.id, third!.id)]);
  assert.equal(await findSession(store, second!.token, world.nowMs()), undefined);
  assert.ok(await findSession(store, third!.token, world.nowMs()));
});

forEachEngine('a sweep removes ended sessions', async (store) => {
  const user = await createAda(store);
  for (let count = 0; count < 3; count += 1) await openSession(store, user);
  const later = world.nowMs() + 13 * HOUR_MS;
  assert.equal((await sweepEnded(store, { nowMs: world.nowMs(), auditDays: 365 })).sessions, 0);
  assert.equal((await sweepEnded(store, { nowMs: later, auditDays: 365 })).sessions, 3);
});

forEachEngine(
  'a one-time token is redeemed once, under its own kind, in its time; the table reveals nothing',
  async (store) => {
    const dependencies = { store, world: createStillWorld(), cipher };
    const token = await issueOneTimeToken(dependencies, 'upstream', {
      content: { secret: 'verifier' },
      lifetimeMs: 1000,
    });
    assert.equal(await findOneTimeToken(dependencies, 'setup', token), undefined);
    assert.equal(await redeemOneTimeToken(dependencies, 'setup', token), undefined);
    assert.deepEqual(await findOneTimeToken(dependencies, 'upstream', token), { secret: 'verifier' });
    const takes = await Promise.all(
      Array.from({ length: 20 }, () => redeemOneTimeToken(dependencies, 'upstream', token)),
    );
    assert.equal(takes.filter((taken) => taken !== undefined).length, 1);

    const late = await issueOneTimeToken(dependencies, 'upstream', {
      content: { secret: 'verifier' },
      lifetimeMs: 1000,
    });
    const rows = await store.read(statement<{ content: Uint8Array }>('test-all-tickets', 'SELECT * FROM tickets'));
    assert.ok(!Buffer.from(rows[0]!.content).includes('verifier'));
    assert.ok(!JSON.stringify(rows).includes(late));
    dependencies.world.moveMs(1000);
    assert.equal(await redeemOneTimeToken(dependencies, 'upstream', late), undefined);
    assert.equal((await sweepEnded(store, { nowMs: dependencies.world.nowMs(), auditDays: 365 })).tickets, 1);
  },
);

forEachEngine('S07 many guesses at once are counted one by one', async (store) => {
  const subjects = attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.1' });
  const attempt = { subjects, nowMs: 1_000_000 };
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => checkAttempt(store, attempt)));
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 5);
});

forEachEngine('S07 the wait doubles, counts for one account at one address, and ends with a success', async (store) => {
  const subjects = attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.1' });
  let nowMs = 1_000_000;
  const waitOf = async (of = subjects) => {
    try {
      await checkAttempt(store, { subjects: of, nowMs });
      return 0;
    } catch (error) {
      return (error as { details: { retryAfterSeconds: number } }).details.retryAfterSeconds;
    }
  };
  for (let count = 0; count < 5; count += 1) assert.equal(await waitOf(), 0);
  assert.equal(await waitOf(), 1);
  nowMs += 1000;
  assert.equal(await waitOf(), 0);
  assert.equal(await waitOf(), 2);
  assert.equal(await waitOf(attemptSubjects({ kind: 'password', account: 'ADA', address: '192.0.2.1' })), 2);
  assert.equal(await waitOf(attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.2' })), 0);
  assert.equal(await waitOf(attemptSubjects({ kind: 'password', account: 'grace', address: '192.0.2.1' })), 0);
  await forgiveAttempt(store, subjects);
  assert.equal(await waitOf(), 0);
  assert.equal((await sweepEnded(store, { nowMs: nowMs + 25 * HOUR_MS, auditDays: 365 })).attempts, 7);
});

forEachEngine('S14 no attempt has to wait because the clock was set back by an hour', async (store) => {
  const subjects = attemptSubjects({ kind: 'password', account: 'ada', address: '192.0.2.1' });
  const nowMs = 10 * HOUR_MS;
  for (let count = 0; count < 4; count += 1) await checkAttempt(store, { subjects, nowMs });
  await checkAttempt(store, { subjects, nowMs: nowMs - HOUR_MS });
  await assert.rejects(checkAttempt(store, { subjects, nowMs: nowMs - HOUR_MS }), /try again in 1 seconds/);
});

forEachEngine('S12 events are read newest first, page by page, for one person or for all', async (store) => {
  const event = {
    kind: 'sign_in_failed',
    address: '192.0.2.1',
    details: { reason: 'wrong password', count: 2 },
  } as const;
  await store.writeAll([
    auditStatement({ ...event, userId: 'u1' }, 1),
    auditStatement({ ...event, userId: 'u2' }, 2),
    auditStatement({ ...event, userId: 'u1' }, 2),
    auditStatement({ kind: 'sign_in', userId: 'u1', actorId: 'u2', clientId: 'app_1' }, 3),
  ]);
  const all = await listEvents(store, { limit: 10 });
  assert.deepEqual(
    all.map(({ atMs }) => atMs),
    [3, 2, 2, 1],
  );
  const { id, ...newest } = all[0]!;
  assert.ok(id);
  const expected = { atMs: 3, kind: 'sign_in', userId: 'u1', actorId: 'u2', clientId: 'app_1', address: undefined };
  assert.deepEqual(newest, { ...expected, details: {} });
  assert.deepEqual(all[3]?.details, event.details);
  const paged = [];
  let before: { atMs: number; id: string } | undefined;
  for (let page = 0; page < 4; page += 1) {
    const [found] = await listEvents(store, { userId: 'u1', limit: 1, before });
    if (found === undefined) break;
    paged.push(found.atMs);
    before = found;
  }
  assert.deepEqual(paged, [3, 2, 1]);
});
