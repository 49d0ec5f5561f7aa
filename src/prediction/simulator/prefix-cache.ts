/**
 * Simulates the KV cache of one server, in which prompts with the same beginning share blocks. Unshared tokens belong to one
 * request. Blocks that are no longer used stay cached until their room is needed (least recently used first), as in vLLM's
 * automatic prefix caching.
 */

export interface PrefixCache {
  readonly capacityTokens: number;
  /** Returns the tokens in use, without blocks that are only cached. */
  usedTokens(): number;
  /** Returns how many leading blocks of a prompt are cached. */
  countMatching(blocks: readonly number[]): number;
  /** Reserves room for these blocks and `ownTokens` more; without enough room, reserves nothing and returns false. */
  acquire(blocks: readonly number[], ownTokens: number): boolean;
  /** Releases blocks; those within the first `computedTokens` tokens stay cached. */
  release(blocks: readonly number[], ownTokens: number, computedTokens: number): void;
  /** Returns an independent copy. */
  fork(): PrefixCache;
}

export function createPrefixCache(capacityTokens: number, blockTokens: number): PrefixCache {
  return buildPrefixCache({ capacityTokens, blockTokens, usersByBlock: new Map(), idle: new Set(), ownTokens: 0 });
}

interface Content {
  readonly capacityTokens: number;
  readonly blockTokens: number;
  /** The number of users of each block in use, which cannot be evicted. */
  readonly usersByBlock: Map<number, number>;
  /** Blocks without users that are still cached, in order of last use. */
  readonly idle: Set<number>;
  readonly ownTokens: number;
}

function buildPrefixCache(content: Content): PrefixCache {
  const { capacityTokens, blockTokens, usersByBlock: active, idle } = content;
  let ownInUse = content.ownTokens;

  const usedTokens = () => active.size * blockTokens + ownInUse;
  const makeRoom = () => {
    const room = capacityTokens - usedTokens();
    if (idle.size * blockTokens <= room) return;
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
        active.set(block, (active.get(block) ?? 0) + 1);
      }
      ownInUse += ownTokens;
      makeRoom();
      return true;
    },
    release(blocks, ownTokens, computedTokens) {
      ownInUse -= ownTokens;
      // From the last block on, so that the beginning, which more prompts share, is evicted last.
      for (let i = blocks.length - 1; i >= 0; i--) {
        const block = blocks[i]!;
        const users = active.get(block);
        if (users === undefined) continue;
        if (users > 1) {
          active.set(block, users - 1);
          continue;
        }
        active.delete(block);
        if ((i + 1) * blockTokens <= computedTokens) idle.add(block);
      }
    },
    fork: () =>
      buildPrefixCache({ ...content, usersByBlock: new Map(active), idle: new Set(idle), ownTokens: ownInUse }),
  };
}
