/**
 * The shards that this worker owns, until shortly before their leases end by its own monotonic clock. Each worker takes an even
 * share; a worker with more gives back shards that are idle.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { SHARD_COUNT } from '../queue/delivery-store.ts';
import { forgetWorkers, type OwnedShard, releaseShards, renewWorkerLease, takeShards } from '../queue/shard-store.ts';

const LEASE_MS = 15_000;
/**
 * The owner begins no attempt in the last part of a lease. Another worker takes the shard by its own clock, and each clock
 * follows that of the database within a second.
 */
const MARGIN_MS = 3000;
export const RENEW_EVERY_MS = 5000;
/** After a renewal that failed, or that took longer than a lease lasts. */
export const RENEW_AGAIN_MS = 500;
const FORGET_MS = 3_600_000;

export interface ShardLeases {
  readonly workerId: string;
  /** The fencing token of a shard that this worker owns now. */
  epochOf(shard: number): number | undefined;
  /** Whether the leases are valid at this moment. They may have ended while a renewal waited for the database. */
  areHeld(): boolean;
  /** Renews, takes and gives back leases. Shards for which `isBusy` is true are not given back. */
  renew(isBusy: (shard: number) => boolean): Promise<void>;
  release(): Promise<void>;
}

interface LeaseState {
  readonly store: Store;
  readonly workerId: string;
  epochs: Map<number, number>;
  leasedUntilMs: number;
  isFirst: boolean;
}

export function createShardLeases(store: Store, world: World): ShardLeases {
  const workerId = world.uuid();
  const state: LeaseState = { store, workerId, epochs: new Map(), leasedUntilMs: 0, isFirst: true };
  const areHeld = (): boolean => world.monotonicMs() < state.leasedUntilMs;
  return {
    workerId,
    areHeld,
    epochOf: (shard) => (areHeld() ? state.epochs.get(shard) : undefined),
    renew: async (isBusy) => {
      const startMs = world.monotonicMs();
      const share = await renewAndTake(state, world.nowMs());
      state.leasedUntilMs = startMs + LEASE_MS - MARGIN_MS;
      await giveBack(state, state.epochs.size - share, isBusy);
    },
    release: async () => {
      const all = [...state.epochs].map(toOwned);
      state.epochs.clear();
      await releaseShards(store, workerId, all);
      await forgetWorkers(store, workerId, world.nowMs() - FORGET_MS);
    },
  };
}

/** Renews the leases. Returns how many shards are this worker's fair share. */
async function renewAndTake(state: LeaseState, nowMs: number): Promise<number> {
  const { store, workerId } = state;
  const expiresAtMs = nowMs + LEASE_MS;
  const { owned, workers } = await renewWorkerLease(store, { workerId, nowMs, expiresAtMs });
  state.epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]));
  // The embedded store belongs to one process: an earlier owner of the shards is dead, and its leases need not run out.
  const isAlone = store.engine === 'sqlite';
  const share = isAlone ? SHARD_COUNT : Math.ceil(SHARD_COUNT / workers);
  const expiredMs = isAlone && state.isFirst ? expiresAtMs : nowMs;
  const taken = await takeShards(store, { workerId, nowMs: expiredMs, expiresAtMs }, share - state.epochs.size);
  state.isFirst = false;
  for (const { shard, epoch } of taken) state.epochs.set(shard, epoch);
  return share;
}

async function giveBack({ store, workerId, epochs }: LeaseState, surplus: number, isBusy: (shard: number) => boolean) {
  if (surplus <= 0) return;
  const idle = [...epochs].filter(([shard]) => !isBusy(shard)).slice(0, surplus);
  for (const [shard] of idle) epochs.delete(shard);
  await releaseShards(store, workerId, idle.map(toOwned));
}

function toOwned([shard, epoch]: [number, number]): OwnedShard {
  return { shard, epoch };
}
