/**
 * The shards that this worker owns, until shortly before their leases end by its own monotonic clock. Each worker takes an even
 * share. A worker with more gives some back, chosen at random, so that busy shards are shared evenly too: a busy shard begins no more
 * attempts, and is given back once those under way are stored.
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
/** After a renewal that failed, or that took longer than a lease lasts, and while shards change their owners. */
export const RENEW_AGAIN_MS = 500;
const FORGET_MS = 3_600_000;

export interface ShardLeases {
  readonly workerId: string;
  /** The fencing token of a shard that this worker owns now. */
  epochOf(shard: number): number | undefined;
  /** Whether the leases are valid at this moment. They may have ended while a renewal waited for the database. */
  areHeld(): boolean;
  /** Whether there are other workers on the same database. */
  hasPeers(): boolean;
  /** Whether shards are about to be given back, or this worker may soon get more. */
  areChanging(): boolean;
  /** Renews, takes and gives back leases. Shards for which `isBusy` is true are given back by a later call. */
  renew(isBusy: (shard: number) => boolean): Promise<void>;
  release(): Promise<void>;
}

interface LeaseState {
  readonly store: Store;
  readonly workerId: string;
  epochs: Map<number, number>;
  /** The epochs of shards that are to be given back: no attempt begins for them. */
  leaving: Map<number, number>;
  leasedUntilMs: number;
  isFirst: boolean;
  workers: number;
  /** Until then other workers may give shards back, since the number of workers changed. */
  sharingUntilMs: number;
}

export function createShardLeases(store: Store, world: World): ShardLeases {
  const workerId = world.uuid();
  const state: LeaseState = {
    store,
    workerId,
    epochs: new Map(),
    leaving: new Map(),
    leasedUntilMs: 0,
    isFirst: true,
    workers: 0,
    sharingUntilMs: 0,
  };
  const areHeld = (): boolean => world.monotonicMs() < state.leasedUntilMs;
  return {
    workerId,
    areHeld,
    epochOf: (shard) => (areHeld() ? state.epochs.get(shard) : undefined),
    hasPeers: () => state.workers > 1,
    areChanging: () => {
      const isShort = state.epochs.size < Math.floor(SHARD_COUNT / state.workers);
      return state.leaving.size > 0 || (isShort && world.monotonicMs() < state.sharingUntilMs);
    },
    renew: async (isBusy) => {
      const startMs = world.monotonicMs();
      const before = state.workers;
      const share = await renewAndTake(state, world.nowMs());
      state.leasedUntilMs = startMs + LEASE_MS - MARGIN_MS;
      if (state.workers !== before) state.sharingUntilMs = startMs + LEASE_MS;
      chooseLeaving(state, state.epochs.size - share, world);
      await giveBack(state, isBusy);
    },
    release: async () => {
      const all = [...state.epochs, ...state.leaving].map(toOwned);
      state.epochs.clear();
      state.leaving.clear();
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
  const { leaving } = state;
  const [left, kept] = partition(owned, ({ shard, epoch }) => leaving.get(shard) === epoch);
  state.leaving = new Map(left.map(({ shard, epoch }) => [shard, epoch]));
  state.epochs = new Map(kept.map(({ shard, epoch }) => [shard, epoch]));
  // The embedded store belongs to one process: an earlier owner of the shards is dead, and its leases need not run out.
  const isAlone = store.engine === 'sqlite';
  state.workers = isAlone ? 1 : workers;
  const share = isAlone ? SHARD_COUNT : Math.ceil(SHARD_COUNT / workers);
  const expiredMs = isAlone && state.isFirst ? expiresAtMs : nowMs;
  const taken = await takeShards(store, { workerId, nowMs: expiredMs, expiresAtMs }, share - state.epochs.size);
  state.isFirst = false;
  for (const { shard, epoch } of taken) state.epochs.set(shard, epoch);
  return share;
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

/** The worker keeps shards that were to leave when there is room for them again. */
function chooseLeaving({ epochs, leaving }: LeaseState, surplus: number, world: Pick<World, 'random'>): void {
  for (const [shard, epoch] of [...leaving].slice(0, Math.max(0, -surplus))) {
    leaving.delete(shard);
    epochs.set(shard, epoch);
  }
  const shards = [...epochs.keys()];
  for (let left = surplus; left > 0; left -= 1) {
    const [shard = 0] = shards.splice(Math.floor(world.random() * shards.length), 1);
    leaving.set(shard, epochs.get(shard)!);
    epochs.delete(shard);
  }
}

async function giveBack({ store, workerId, leaving }: LeaseState, isBusy: (shard: number) => boolean): Promise<void> {
  const idle = [...leaving].filter(([shard]) => !isBusy(shard));
  await releaseShards(store, workerId, idle.map(toOwned));
  for (const [shard] of idle) leaving.delete(shard);
}

function toOwned([shard, epoch]: [number, number]): OwnedShard {
  return { shard, epoch };
}
