import assert from 'node:assert/strict';
import { test } from 'node:test';
import type pg from 'pg';
import { createLog } from '../../telemetry/log.ts';
import { realWorld, type World } from '../../world.ts';
import { createPostgresWatch } from './postgres-watch.ts';

/** Time passes in the next event loop turn, so that an answer that has not arrived by then is late. */
const world: World = { ...realWorld, sleep: () => new Promise(setImmediate) };
const log = createLog('silent');
const never = () => new Promise<void>(() => {});

async function waitForVerdict(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await new Promise(setImmediate);
}

async function inquire(ask: () => Promise<void>, during: (watch: ReturnType<typeof createPostgresWatch>) => unknown) {
  const watch = createPostgresWatch({ ask, isCurrent: () => true, log, world });
  watch.suspect();
  await waitForVerdict();
  await during(watch);
  watch.close();
}

const PRESENT: [title: string, ask: () => Promise<void>][] = [
  ['answers', async () => {}],
  ['has no connection to spare', async () => Promise.reject(Object.assign(new Error(), { code: '53300' }))],
  ['knows no such user any more', async () => Promise.reject(Object.assign(new Error(), { code: '28P01' }))],
];
for (const [title, ask] of PRESENT)
  test(`a server that ${title} is there`, () => inquire(ask, (watch) => watch.checkPresent()));

const AWAY: [title: string, ask: () => Promise<void>][] = [
  ['never answers', never],
  ['refuses connections', async () => Promise.reject(Object.assign(new Error(), { code: 'ECONNREFUSED' }))],
  ['is starting', async () => Promise.reject(Object.assign(new Error(), { code: '57P03' }))],
];
for (const [title, ask] of AWAY)
  test(`a server that ${title} is away`, () =>
    inquire(ask, (watch) =>
      assert.throws(() => watch.checkPresent(), { code: 'unavailable', details: { retryAfterSeconds: 1 } }),
    ));

test('connections that wait for a server which is away are ended, and calls pass again once it answers', async () => {
  let ask = never;
  const watch = createPostgresWatch({ ask: () => ask(), isCurrent: () => true, log, world });
  const broken = Promise.withResolvers<void>();
  const client = { end: async () => broken.reject(new Error('Connection terminated')) };
  const query = watch.guard(client as unknown as pg.PoolClient, () => broken.promise);
  watch.suspect();
  await assert.rejects(query, /Connection terminated/);
  assert.throws(() => watch.checkPresent());
  ask = async () => {};
  watch.suspect();
  await waitForVerdict();
  watch.checkPresent();
  watch.close();
});
