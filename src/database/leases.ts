/** Acquires, renews and releases leases in a table: one owner at a time, with an epoch as fencing token. */
import type { World } from '../world.ts';
import { type Row, type Statement, type Store, statement } from './store.ts';

/**
 * Grants one process at a time the right to do a piece of work. It is a lease, not a lock, so that after a crash of its owner the
 * work continues once the lease has expired. `epoch` grows with every change of owner and is the fencing token: a statement that
 * writes under the lease compares it, so that an owner who slept through the expiry changes nothing.
 */
export interface Lease {
  readonly name: string;
  readonly owner: string;
  readonly epoch: number;
  readonly expiresAtMs: number;
}

export const LEASE_TABLE = `CREATE TABLE IF NOT EXISTS leases (
  name {TEXT} NOT NULL PRIMARY KEY,
  owner {TEXT} NOT NULL,
  epoch {INT} NOT NULL,
  expires_at_ms {INT} NOT NULL
)`;

interface EpochRow {
  readonly epoch: number;
}

/**
 * How much later than the longest lease a lease may end, since clocks of processes differ. A lease that ends even later was made
 * with a wrong clock and is ignored: otherwise the work would wait until the right clock has reached that time.
 */
export const MAX_CLOCK_SKEW_MS = 60_000;

/** $1 name, $2 owner, $3 expiry, $4 now, $5 the latest end that a lease can have. Returns a row if the caller got the lease. */
export const acquireLeaseSql: Statement<EpochRow> = statement(
  'lease-acquire',
  `INSERT INTO leases (name, owner, epoch, expires_at_ms) VALUES ($1, $2, 1, $3)
   ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1, expires_at_ms = excluded.expires_at_ms
   WHERE leases.expires_at_ms <= $4 OR leases.expires_at_ms > $5
   RETURNING epoch`,
);

// A holder may renew after the lease ended if no other process took it: the epoch decides. Not after a release.
const renewLeaseSql: Statement<EpochRow> = statement(
  'lease-renew',
  `UPDATE leases SET expires_at_ms = $1
   WHERE name = $2 AND owner = $3 AND epoch = $4 AND expires_at_ms > 0
   RETURNING epoch`,
);

// The row and its epoch stay: with a new row at epoch 1, the writes of an old owner could pass.
export const releaseLeaseSql: Statement<Row> = statement(
  'lease-release',
  `UPDATE leases SET expires_at_ms = 0 WHERE name = $1 AND owner = $2 AND epoch = $3`,
);

export interface LeaseRequest {
  readonly name: string;
  readonly owner: string;
  readonly nowMs: number;
  readonly durationMs: number;
}

/** Acquires the lease, or returns undefined while any owner holds it. The holder must renew it instead. */
export async function acquireLease(store: Store, request: LeaseRequest): Promise<Lease | undefined> {
  const { name, owner, nowMs, durationMs } = request;
  const expiresAtMs = nowMs + durationMs;
  const latestMs = expiresAtMs + MAX_CLOCK_SKEW_MS;
  const [row] = await store.write(acquireLeaseSql, [name, owner, expiresAtMs, nowMs, latestMs]);
  return row === undefined ? undefined : { name, owner, epoch: row.epoch, expiresAtMs };
}

/** Returns the lease with a later end, or undefined when it was lost. */
export async function renewLease(store: Store, lease: Lease, expiresAtMs: number): Promise<Lease | undefined> {
  const rows = await store.write(renewLeaseSql, [expiresAtMs, lease.name, lease.owner, lease.epoch]);
  return rows.length === 0 ? undefined : { ...lease, expiresAtMs };
}

/** Releases the lease, so that the next owner can begin at once. Harmless when the lease was lost. */
export async function releaseLease(store: Store, lease: Lease): Promise<void> {
  await store.write(releaseLeaseSql, [lease.name, lease.owner, lease.epoch]);
}

/**
 * Does the work if the lease is free, renews it meanwhile and releases it. The signal aborts when the lease is lost:
 * another process may have begun the same work, so its writes must be correct without the lease, or compare the epoch.
 */
export async function runUnderLease(
  { store, world }: { readonly store: Store; readonly world: World },
  { name, durationMs }: Pick<LeaseRequest, 'name' | 'durationMs'>,
  work: (lost: AbortSignal) => Promise<void>,
): Promise<void> {
  const lease = await acquireLease(store, { name, owner: world.uuid(), nowMs: world.nowMs(), durationMs });
  if (lease === undefined) return;
  const lost = new AbortController();
  let { expiresAtMs } = lease;
  let isRenewing = false;
  const keep = (endMs: number | undefined): void => {
    if (endMs === undefined || endMs <= world.nowMs()) lost.abort(new Error(`The lease "${name}" was lost`));
    else expiresAtMs = endMs;
  };
  const renew = async (): Promise<void> => {
    // One renewal at a time: an older one that is stored after a newer one would shorten the lease.
    if (isRenewing) return keep(expiresAtMs);
    isRenewing = true;
    // A failed renewal is retried until the lease ends.
    const renewed = await renewLease(store, lease, world.nowMs() + durationMs).catch(() => ({ expiresAtMs }));
    isRenewing = false;
    keep(renewed?.expiresAtMs);
  };
  const renewal = setInterval(() => void renew(), durationMs / 3);
  try {
    await work(lost.signal);
  } finally {
    clearInterval(renewal);
    await releaseLease(store, lease);
  }
}
