/**
 * Simulates the KV cache of one server, whose blocks are shared by equal prompt beginnings. Unshared tokens belong to one
 * request, and unused blocks stay as cache until their room is needed (least recently used first), as in vLLM's automatic prefix
 * caching.
 */

export interface PrefixCache {
  readonly capacityTokens: number;
  /** Tokens in use, the mere cache left out. */
  usedTokens(): number;
  /** How many leading blocks of a prompt are there. */
  countMatching(blocks: readonly number[]): number;
  /** Takes the room for these blocks and `ownTokens` more; false, and nothing taken, when there is not enough. */
  acquire(blocks: readonly number[], ownTokens: number): boolean;
  /** Releases blocks, of which only the first `computedTokens` tokens are worth remembering. */
  release(blocks: readonly number[], ownTokens: number, computedTokens: number): void;
  /** The same content, going its own way from now on. */
  fork(): PrefixCache;
}

export function createPrefixCache(capacityTokens: number, blockTokens: number): PrefixCache {
  return buildPrefixCache({ capacityTokens, blockTokens, usersByBlock: new Map(), idle: new Set(), ownTokens: 0 });
}

interface Content {
  readonly capacityTokens: number;
  readonly blockTokens: number;
  /** Blocks that are in use cannot be evicted. */
  readonly usersByBlock: Map<number, number>;
  /** Free but remembered, in order of last use. */
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
      // The last block first: the beginning, which more prompts share, is then evicted last.
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
