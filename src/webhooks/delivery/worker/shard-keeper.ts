/**
 * The shards of destinations that this worker has, as it may rely on them: until the lease would have run out by its own
 * monotonic clock. Each worker takes an even part; who has too much gives back what is idle.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import { SHARD_COUNT } from '../queue/delivery-store.ts';
import { beat, forgetWorkers, type OwnedShard, releaseShards, takeShards } from '../queue/shard-store.ts';

const LEASE_MS = 15_000;
export const BEAT_MS = 5000;
const FORGET_MS = 3_600_000;

export interface ShardKeeper {
  readonly owner: string;
  /** The fencing token of a shard that is ours now. */
  epochOf(shard: number): number | undefined;
  /** Renews, takes and gives back. `isBusy` names shards that have something under way. */
  beat(isBusy: (shard: number) => boolean): Promise<void>;
  release(): Promise<void>;
}

export function createShardKeeper(store: Store, world: World): ShardKeeper {
  const owner = world.uuid();
  let epochs = new Map<number, number>();
  let leasedUntilMs = 0;
  // The embedded store is one process's own: whoever had the shards before us is dead, and nobody waits for its leases.
  const isAlone = store.engine === 'sqlite';
  let isFirstBeat = true;

  const giveBack = async (surplus: number, isBusy: (shard: number) => boolean): Promise<void> => {
    const idle = [...epochs].filter(([shard]) => !isBusy(shard)).slice(0, surplus);
    for (const [shard] of idle) epochs.delete(shard);
    await releaseShards(store, owner, idle.map(toOwned));
  };

  return {
    owner,
    epochOf: (shard) => (world.monotonicMs() < leasedUntilMs ? epochs.get(shard) : undefined),
    beat: async (isBusy) => {
      const startMs = world.monotonicMs();
      const nowMs = world.nowMs();
      const times = { owner, nowMs, expiresAtMs: nowMs + LEASE_MS };
      const { owned, workers } = await beat(store, times);
      epochs = new Map(owned.map(({ shard, epoch }) => [shard, epoch]));
      const share = isAlone ? SHARD_COUNT : Math.ceil(SHARD_COUNT / workers);
      const takeable = isAlone && isFirstBeat ? { ...times, nowMs: times.expiresAtMs } : times;
      const taken = await takeShards(store, takeable, share - epochs.size);
      isFirstBeat = false;
      for (const { shard, epoch } of taken) epochs.set(shard, epoch);
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
