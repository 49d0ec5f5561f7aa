/** Two servers that take turns as the primary, and a commit that the standby never confirms. */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { findReasonToSkip, openTestStore } from '../../../test/support/store/engines.ts';
import { findNoteSql, insertNoteSql, insertPair, noteMigration } from '../../../test/support/store/note-store.ts';
import { type PostgresCluster, startPostgresCluster } from '../../../test/support/store/postgres-cluster.ts';
import type { Failure } from '../../errors.ts';
import { migrations } from '../migrations/list.ts';
import type { Store } from '../store.ts';

const skip = findReasonToSkip('postgres');
const options = { migrations: [...migrations, noteMigration] };

interface Host {
  readonly cluster: PostgresCluster;
  readonly address: string;
  readonly admin: pg.Client;
}

const hosts: Host[] = [];

const urlOf = (list: readonly Host[]): string =>
  `postgres://postgres@${list.map(({ address }) => address).join(',')}/postgres`;
const open = (list: readonly Host[]): Promise<Store> =>
  openTestStore({ dataDir: '', databaseUrl: urlOf(list) }, options);

async function startHost(): Promise<Host> {
  const address = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  const cluster = await startPostgresCluster({ settings: [`-clisten_addresses=${address}`] });
  const admin = new pg.Client({ host: cluster.socketDir, user: 'postgres', database: 'postgres' });
  await admin.connect();
  return { cluster, address, admin };
}

/** Takes effect with the next transaction of each session, once the session has read it. */
async function change({ admin }: Host, name: string, value: string): Promise<void> {
  await admin.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  await admin.query('SELECT pg_reload_conf()');
  await waitUntil(async () => (await admin.query(`SHOW ${name}`)).rows[0][name] === value);
}

const setReadOnly = (host: Host, value: 'on' | 'off') => change(host, 'default_transaction_read_only', value);

before(async () => {
  if (skip) return;
  hosts.push(await startHost(), await startHost());
  for (const host of hosts) await (await open([host]))[Symbol.asyncDispose]();
});

after(async () => {
  for (const { admin, cluster } of hosts) {
    await admin.end();
    await cluster.stop();
  }
});

test('writes go to the host that accepts them, and follow it without an error when it changes', { skip }, async () => {
  const [one, two] = hosts as [Host, Host];
  await setReadOnly(one, 'on');
  await using store = await open(hosts);
  await store.write(insertNoteSql, ['first', 1]);
  await setReadOnly(two, 'on');
  await setReadOnly(one, 'off');
  // One statement, and several: the new standby refused each, so nothing was stored.
  await Promise.all([
    store.write(insertNoteSql, ['second', 2]),
    store.call(insertPair, 'third'),
    store.write(insertNoteSql, ['fourth', 4]),
  ]);
  const found = await Promise.all(['first', 'second', 'third-a', 'fourth'].map((id) => store.read(findNoteSql, [id])));
  assert.deepEqual(
    found.map((rows) => rows.length),
    [0, 1, 1, 1],
  );
});

test('a start names each host and the reason why it cannot be used', { skip }, async () => {
  for (const host of hosts) await setReadOnly(host, 'on');
  const databaseUrl = urlOf(hosts).replace('@', '@127.0.0.1:1,');
  await assert.rejects(openTestStore({ dataDir: '', databaseUrl }, options), (error: Failure) => {
    assert.equal(error.code, 'unavailable');
    assert.match(
      error.message,
      /no host accepts writes: 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\); 127\.\S+:5432 \(it accepts no writes\); 127\./,
    );
    return true;
  });
  for (const host of hosts) await setReadOnly(host, 'off');
});

/** Cancels commits that wait for a standby, as a statement timeout does; resolves with their number. */
async function cancelWaits({ admin }: Host): Promise<number> {
  const { rowCount } = await admin.query(
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'trivet'",
  );
  return rowCount ?? 0;
}

/** The outcome of the first write whose wait was cancelled: the server begins to wait shortly after its setting changed. */
async function writeWithoutStandby(host: Host, write: () => Promise<unknown>): Promise<PromiseSettledResult<unknown>> {
  for (;;) {
    let canceled = 0;
    let outcome: PromiseSettledResult<unknown> | undefined;
    void Promise.allSettled([write()]).then(([settled]) => {
      outcome = settled;
    });
    while (outcome === undefined) {
      canceled += await cancelWaits(host);
      // A backend that waits for its standby sends its client nothing.
      await sleep(20);
    }
    if (canceled > 0) return outcome;
  }
}

test('a commit that PostgreSQL acknowledges without its standby is not acknowledged', { skip }, async () => {
  const [one] = hosts as [Host];
  await using store = await open([one]);
  await one.admin.query("SET synchronous_commit = 'local'");
  await change(one, 'synchronous_standby_names', 'missing');
  const writes = [
    () => store.write(insertNoteSql, [randomUUID(), 1]),
    () => store.call(insertPair, randomUUID()),
    () => store.writeAll([1, 2].map(() => ({ statement: insertNoteSql, parameters: [randomUUID(), 1] }))),
  ];
  for (const write of writes) {
    const outcome = await writeWithoutStandby(one, write);
    assert.equal(outcome.status, 'rejected');
    const { code, details, message } = outcome.reason as Failure;
    assert.deepEqual([code, details.isUnknown], ['unavailable', true]);
    assert.equal(message, 'The outcome of the write is unknown: no standby has confirmed it');
  }
  await change(one, 'synchronous_standby_names', '');
  await store.write(insertNoteSql, ['confirmed', 1]);
});
