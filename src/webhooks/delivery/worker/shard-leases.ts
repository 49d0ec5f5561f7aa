/**
 * Decides which shards this worker owns and until when, and shares them evenly among workers. A worker with more than its share gives
 * some back, chosen at random; busy shards only for workers that have settled, 15 s after they joined, or later if workers were killed
 * recently. For a busy shard no more attempts begin, and it is given back once those under way are stored. Two workers that start
 * together after all others were killed each take the other for a settled one, so they take over up to 10 s later than one alone.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { SHARD_COUNT } from '../queue/delivery-store.ts';
import {
  forgetWorkers,
  type OwnedShard,
  releaseShards,
  renewLastLeases,
  renewWorkerLease,
  takeShards,
} from '../queue/shard-store.ts';

const LEASE_MS = 15_000;
/**
 * The owner begins no attempt in this last part of a lease: another worker takes the shard by its own clock, and each clock follows
 * that of the database within a second.
 */
const MARGIN_MS = 3000;
export const RENEW_EVERY_MS = 5000;
/** The time to the next renewal after one that failed or took longer than a lease, and while shards change owners. */
export const RENEW_AGAIN_MS = 500;
const FORGET_MS = 3_600_000;
/**
 * A worker that joins gets busy shards after 15 s, plus 60 s for each worker that was killed in the last ten minutes: if a worker is
 * killed again and again, its shards have no owner until its leases end.
 */
const SETTLE_MS = LEASE_MS;
const SETTLE_FACTOR_OF_CRASH = 4;
/** For this long a worker that has just joined leaves expired shards to settled workers, which take them at their next renewal. */
const LEFT_TO_SETTLED_MS = 2 * RENEW_EVERY_MS;
/** For this long a worker that has joined looks twice a second for shards that others give back. */
const SHARING_MS = 2 * SETTLE_MS + RENEW_EVERY_MS;

export interface ShardLeases {
  readonly workerId: string;
  /** The fencing token of a shard that this worker owns now. */
  epochOf(shard: number): number | undefined;
  /** Whether the leases are valid now. They may have ended while a renewal waited for the database. */
  areHeld(): boolean;
  /** Whether there are other workers on the same database. */
  hasPeers(): boolean;
  /** Whether this worker is about to give shards back, or may soon get more. */
  areChanging(): boolean;
  /**
   * Renews, takes and gives back leases. Shards for which `isBusy` is true are given back by a later call. Returns the shards for which
   * another worker may have sent since the last completed call, including those that this worker owns again.
   */
  renew(isBusy: (shard: number) => boolean): Promise<ReadonlySet<number>>;
  /** Prepares a stop: no attempt begins, no shard is taken, and each renewal gives back the shards that are not busy. */
  leave(): void;
  release(): Promise<void>;
}

interface LeaseState {
  readonly store: Store;
  readonly workerId: string;
  epochs: Map<number, number>;
  /** The epochs of shards that will be given back: no attempt begins for them. */
  leaving: Map<number, number>;
  /** Shards that another worker was found to have taken. */
  lost: Set<number>;
  leasedUntilMs: number;
  isFirst: boolean;
  isEnding: boolean;
  workers: number;
  /** When each worker was first seen; monotonic. Workers that were there before this one have −∞. */
  readonly seenSinceMs: Map<string, number>;
  /** Until when other workers may give shards back: the number of workers has changed, or this worker has lost shards. Monotonic. */
  sharingUntilMs: number;
}

export function createShardLeases(store: Store, world: World): ShardLeases {
  const workerId = world.uuid();
  const state: LeaseState = {
    store,
    workerId,
    epochs: new Map(),
    leaving: new Map(),
    lost: new Set(),
    leasedUntilMs: 0,
    isFirst: true,
    isEnding: false,
    workers: 0,
    seenSinceMs: new Map(),
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
      if (state.isEnding) await renewLast(state, world);
      else await renewAndShare(state, world, isBusy);
      await giveBack(state, isBusy);
      const { lost } = state;
      state.lost = new Set();
      return lost;
    },
    leave: () => {
      state.isEnding = true;
      for (const [shard, epoch] of state.epochs) state.leaving.set(shard, epoch);
      state.epochs.clear();
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

type Clocks = Pick<World, 'nowMs' | 'monotonicMs'>;

/** Renews leases during a stop, so that other workers do not repeat the attempts that are under way. */
async function renewLast({ store, workerId }: LeaseState, world: Clocks): Promise<void> {
  await renewLastLeases(store, { workerId, expiresAtMs: world.nowMs() + LEASE_MS });
}

async function renewAndShare(
  state: LeaseState,
  world: Clocks & LeavingContext['world'],
  isBusy: LeavingContext['isBusy'],
): Promise<void> {
  const startMs = world.monotonicMs();
  const before = state.workers;
  const shares = await renewAndTake(state, world);
  state.leasedUntilMs = startMs + (LEASE_MS - MARGIN_MS);
  if (state.workers !== before || state.lost.size > 0) state.sharingUntilMs = startMs + SHARING_MS;
  chooseLeaving(state, shares, { isBusy, world });
}

/** This worker's share, in shards. */
interface Shares {
  /** If all live workers share. */
  readonly ofAll: number;
  /** If only settled workers and this one share: as many or more. */
  readonly ofSettled: number;
  /** Whether this worker is not settled, and another worker was there before it. */
  readonly isJunior: boolean;
}

/** Renews the leases, and takes shards that are free. */
async function renewAndTake(state: LeaseState, world: Clocks): Promise<Shares> {
  const { store, workerId, leaving } = state;
  const nowMs = world.nowMs();
  const expiresAtMs = nowMs + LEASE_MS;
  const { owned, workerIds, crashes } = await renewWorkerLease(store, { workerId, nowMs, expiresAtMs });
  recordLost(state, owned);
  const [left, kept] = partition(owned, ({ shard, epoch }) => leaving.get(shard) === epoch);
  state.leaving = new Map(left.map(({ shard, epoch }) => [shard, epoch]));
  state.epochs = new Map(kept.map(({ shard, epoch }) => [shard, epoch]));
  // The embedded store belongs to one process: an earlier owner of the shards has ended, so its leases need not expire.
  const isAlone = store.engine === 'sqlite';
  const peers = isAlone ? [] : workerIds.filter((id) => id !== workerId);
  state.workers = 1 + peers.length;
  const shares = divideShards(state, peers, { nowMs: world.monotonicMs(), crashes });
  const expiredMs = isAlone && state.isFirst ? expiresAtMs : nowMs - (shares.isJunior ? LEFT_TO_SETTLED_MS : 0);
  const share = shares.isJunior ? shares.ofAll : shares.ofSettled;
  const taken = await takeShards(store, { workerId, nowMs: expiredMs, expiresAtMs }, share - state.epochs.size);
  state.isFirst = false;
  for (const { shard, epoch } of taken) state.epochs.set(shard, epoch);
  return shares;
}

/** Records shards that another worker took after their leases had expired, even if it has given them back by now. */
function recordLost({ epochs, leaving, lost }: LeaseState, owned: readonly OwnedShard[]): void {
  const epochOf = new Map(owned.map(({ shard, epoch }) => [shard, epoch]));
  for (const [shard, epoch] of [...epochs, ...leaving]) if (epochOf.get(shard) !== epoch) lost.add(shard);
}

function divideShards(
  { workerId, seenSinceMs, isFirst }: LeaseState,
  peers: readonly string[],
  { nowMs, crashes }: { readonly nowMs: number; readonly crashes: number },
): Shares {
  const workerIds = [workerId, ...peers];
  for (const id of seenSinceMs.keys()) if (!workerIds.includes(id)) seenSinceMs.delete(id);
  for (const id of workerIds)
    if (!seenSinceMs.has(id)) seenSinceMs.set(id, isFirst && id !== workerId ? Number.NEGATIVE_INFINITY : nowMs);
  const settleMs = SETTLE_MS * (1 + SETTLE_FACTOR_OF_CRASH * crashes);
  const isSettled = (id: string) => nowMs - seenSinceMs.get(id)! >= settleMs;
  const isSenior = (id: string) => seenSinceMs.get(id) === Number.NEGATIVE_INFINITY;
  return {
    ofAll: Math.ceil(SHARD_COUNT / workerIds.length),
    ofSettled: Math.ceil(SHARD_COUNT / (1 + peers.filter(isSettled).length)),
    isJunior: !isSettled(workerId) && peers.some(isSenior),
  };
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

interface LeavingContext {
  readonly isBusy: (shard: number) => boolean;
  readonly world: Pick<World, 'random'>;
}

/** Chooses shards to give back, or keeps some that were chosen if the share has grown. Workers that are not settled get idle shards. */
function chooseLeaving(state: LeaseState, { ofAll, ofSettled }: Shares, { isBusy, world }: LeavingContext): void {
  const { epochs, leaving } = state;
  for (const [shard, epoch] of [...leaving].slice(0, Math.max(0, ofAll - epochs.size))) {
    leaving.delete(shard);
    epochs.set(shard, epoch);
  }
  const shards = [...epochs.keys()];
  while (epochs.size > ofAll && shards.length > 0) {
    const [shard = 0] = shards.splice(Math.floor(world.random() * shards.length), 1);
    if (epochs.size <= ofSettled && isBusy(shard)) continue;
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
