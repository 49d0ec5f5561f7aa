/**
 * Leases the 256 shards, into which origins are hashed, to workers; when a worker crashes, others take over its shards (failover).
 * The epoch rises with every change of owner and fences late writes of the former owner.
 */
import { MAX_CLOCK_SKEW_MS } from '../../../database/leases.ts';
import { type Statement, type Store, statement } from '../../../database/store.ts';
import { bindRows, multiRowStatement } from '../../../database/value-rows.ts';

export interface OwnedShard {
  readonly shard: number;
  readonly epoch: number;
}

interface WorkerLease {
  readonly workerId: string;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

const registerSql: Statement = statement(
  'delivery-worker-register',
  `INSERT INTO delivery_workers (owner, expires_at_ms) VALUES ($1, $2)
   ON CONFLICT (owner) DO UPDATE SET expires_at_ms = excluded.expires_at_ms`,
);

// Renews expired leases too, if no other worker has taken them: no other worker has sent for the shard, so its epoch still fences
// results.
const renewSql: Statement<OwnedShard> = statement(
  'delivery-shard-renew',
  `UPDATE delivery_shards SET expires_at_ms = $2 WHERE owner = $1 RETURNING shard, epoch`,
);

const listWorkersSql: Statement<{ owner: string; expires_at_ms: number }> = statement(
  'delivery-worker-list',
  `SELECT owner, expires_at_ms FROM delivery_workers WHERE expires_at_ms > $1 AND expires_at_ms <= $2`,
);
/** How long a killed worker counts as a crash. A worker that stops deletes its entry; one that is killed leaves it. */
const CRASHED_FOR_MS = 600_000;

// $5 is the latest end that a lease can have: one that ends later was written by a wrong clock.
const takeSql: Statement<OwnedShard> = statement(
  'delivery-shard-take',
  `UPDATE delivery_shards SET owner = $1, epoch = epoch + 1, expires_at_ms = $2
   WHERE (expires_at_ms <= $3 OR expires_at_ms > $5) AND owner <> $1 AND shard IN
     (SELECT f.shard FROM delivery_shards f WHERE (f.expires_at_ms <= $3 OR f.expires_at_ms > $5) AND f.owner <> $1
      ORDER BY f.shard LIMIT $4)
   RETURNING shard, epoch`,
);

const releaseSql = multiRowStatement(
  'delivery-shard-release',
  { shard: 'int', epoch: 'int' },
  ({ values, v, more }) =>
    `UPDATE delivery_shards SET owner = '', expires_at_ms = 0 FROM ${values}
     WHERE delivery_shards.shard = ${v.shard} AND delivery_shards.epoch = ${v.epoch} AND delivery_shards.owner = ${more(1)}`,
);

const forgetWorkerSql: Statement = statement(
  'delivery-worker-forget',
  `DELETE FROM delivery_workers WHERE owner = $1 OR expires_at_ms < $2`,
);

export interface WorkerLeases {
  readonly owned: readonly OwnedShard[];
  /** The workers that are alive, this one too. */
  readonly workerIds: readonly string[];
  /** How many workers were killed in the last ten minutes. */
  readonly crashes: number;
}

/** Renews this worker's entry and leases. */
export async function renewWorkerLease(
  store: Store,
  { workerId, nowMs, expiresAtMs }: WorkerLease,
): Promise<WorkerLeases> {
  const [, renewed] = await store.writeAll(
    [
      { statement: registerSql, parameters: [workerId, expiresAtMs] },
      { statement: renewSql, parameters: [workerId, expiresAtMs] },
    ],
    // A process that dies before the commit would keep rows locked that other workers wait for.
    { inOneTrip: true },
  );
  const entries = await store.read(listWorkersSql, [nowMs - CRASHED_FOR_MS, expiresAtMs + MAX_CLOCK_SKEW_MS]);
  const workerIds = entries.filter(({ expires_at_ms }) => expires_at_ms > nowMs).map(({ owner }) => owner);
  const owned = (renewed ?? []) as unknown as OwnedShard[];
  return { owned, workerIds, crashes: entries.length - workerIds.length };
}

/** Renews the leases of a worker that is stopping, and deletes its entry: the others divide the shards without it. */
export async function renewLastLeases(
  store: Store,
  { workerId, expiresAtMs }: Pick<WorkerLease, 'workerId' | 'expiresAtMs'>,
): Promise<void> {
  await store.writeAll(
    [
      { statement: forgetWorkerSql, parameters: [workerId, 0] },
      { statement: renewSql, parameters: [workerId, expiresAtMs] },
    ],
    { inOneTrip: true },
  );
}

/** Takes up to `count` shards whose lease has ended, or that never had one. */
export async function takeShards(
  store: Store,
  { workerId, nowMs, expiresAtMs }: WorkerLease,
  count: number,
): Promise<OwnedShard[]> {
  if (count <= 0) return [];
  return await store.write(takeSql, [workerId, expiresAtMs, nowMs, count, expiresAtMs + MAX_CLOCK_SKEW_MS]);
}

export async function releaseShards(store: Store, workerId: string, shards: readonly OwnedShard[]): Promise<void> {
  if (shards.length > 0) await store.writeAll(bindRows(releaseSql, shards, { more: [workerId] }), { inOneTrip: true });
}

/** Deletes the entry of a worker that stops, and entries that were not renewed since `beforeMs`. */
export async function forgetWorkers(store: Store, workerId: string, beforeMs: number): Promise<void> {
  await store.write(forgetWorkerSql, [workerId, beforeMs]);
}
