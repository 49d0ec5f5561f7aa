/**
 * The shards of destinations that this worker owns, for as long as it may rely on them: until the lease would have run out
 * by its own monotonic clock. Each worker takes an even share; a worker with more gives back shards that are idle.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { SHARD_COUNT } from '../queue/delivery-store.ts';
import { beat, forgetWorkers, type OwnedShard, releaseShards, takeShards } from '../queue/shard-store.ts';

const LEASE_MS = 15_000;
export const RENEW_EVERY_MS = 5000;
const FORGET_MS = 3_600_000;

export interface ShardLeases {
  readonly owner: string;
  /** The fencing token of a shard that this worker owns now. */
  epochOf(shard: number): number | undefined;
  /** Renews, takes and gives back leases. Shards for which `isBusy` is true are not given back. */
  renew(isBusy: (shard: number) => boolean): Promise<void>;
  release(): Promise<void>;
}

export function createShardLeases(store: Store, world: World): ShardLeases {
  const owner = world.uuid();
  let epochs = new Map<number, number>();
  let leasedUntilMs = 0;
  // The embedded store belongs to one process: an earlier owner of the shards is dead, and its leases need not run out.
  const isAlone = store.engine === 'sqlite';
  let isFirst = true;

  const giveBack = async (surplus: number, isBusy: (shard: number) => boolean): Promise<void> => {
    const idle = [...epochs].filter(([shard]) => !isBusy(shard)).slice(0, surplus);
    for (const [shard] of idle) epochs.delete(shard);
    await releaseShards(store, owner, idle.map(toOwned));
  };
  const takeShare = async (nowMs: number, workers: number): Promise<number> => {
    const share = isAlone ? SHARD_COUNT : Math.ceil(SHARD_COUNT / workers);
    const expiresAtMs = nowMs + LEASE_MS;
    const expiredMs = isAlone && isFirst ? expiresAtMs : nowMs;
    const taken = await takeShards(store, { owner, nowMs: expiredMs, expiresAtMs }, share - epochs.size);
    isFirst = false;
    for (const { shard, epoch } of taken) epochs.set(shard, epoch);
    return share;
  };

  return {
    owner,
    epochOf: (shard) => (world.monotonicMs() < leasedUntilMs ? epochs.get(shard) : undefined),
    renew: async (isBusy) => {
      const startMs = world.monotonicMs();
      const nowMs = world.nowMs();
      const { owned, workers } = await beat(store, { owner, nowMs, expiresAtMs: nowMs + LEASE_MS });
      epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]));
      const share = await takeShare(nowMs, workers);
      leasedUntilMs = startMs + LEASE_MS;
      if (epochs.size > share) await giveBack(epochs.size - share, isBusy);
    },
    release: async () => {
      const all = [...epochs].map(toOwned);
      epochs.clear();
      await releaseShards(store, owner, all);
      await forgetWorkers(store, owner, world.nowMs() - FORGET_MS);
    },
  };
}

function toOwned([shard, epoch]: [number, number]): OwnedShard {
  return { shard, epoch };
}
