/**
 * The key-value memory of one server: blocks of a prompt are shared by requests with the same beginning, unshared
 * tokens belong to one request, and blocks that nobody uses stay as cache until their room is needed (least recently
 * used first), as in vLLM's automatic prefix caching.
 */

interface Block {
  users: number;
}

export interface PrefixCache {
  readonly capacityTokens: number;
  /** Tokens in use, the mere cache left out. */
  usedTokens(): number;
  /** How many leading blocks of a prompt are there. */
  countMatching(blocks: readonly number[]): number;
  /** Takes the room for these blocks and `ownTokens` more; false, and nothing taken, when there is none. */
  acquire(blocks: readonly number[], ownTokens: number): boolean;
  release(blocks: readonly number[], ownTokens: number): void;
}

export function createPrefixCache(capacityTokens: number, blockTokens: number): PrefixCache {
  /** In use: not evictable. */
  const active = new Map<number, Block>();
  /** Free but remembered, in order of last use. */
  const idle = new Set<number>();
  let ownInUse = 0;

  const usedTokens = () => active.size * blockTokens + ownInUse;
  const makeRoom = () => {
    const room = capacityTokens - usedTokens();
    for (const block of idle) {
      if (idle.size * blockTokens <= room) return;
      idle.delete(block);
    }
  };

  return {
    capacityTokens,
    usedTokens,
    countMatching(blocks) {
      const firstMissing = blocks.findIndex((block) => !active.has(block) && !idle.has(block));
      return firstMissing === -1 ? blocks.length : firstMissing;
    },
    acquire(blocks, ownTokens) {
      const fresh = blocks.filter((block) => !active.has(block)).length;
      if (usedTokens() + fresh * blockTokens + ownTokens > capacityTokens) return false;
      for (const block of blocks) {
        idle.delete(block);
        const known = active.get(block);
        if (known) known.users++;
        else active.set(block, { users: 1 });
      }
      ownInUse += ownTokens;
      makeRoom();
      return true;
    },
    release(blocks, ownTokens) {
      ownInUse -= ownTokens;
      for (const block of blocks) {
        const known = active.get(block);
        if (known === undefined) continue;
        known.users--;
        if (known.users > 0) continue;
        active.delete(block);
        idle.add(block);
      }
    },
  };
}
