/**
 * What arrives while a commit is under way goes into the next one, together. So callers share what a commit costs, and
 * of two units that change the same rows one does not wait for the other's transaction, as long as one process takes them.
 */
import { isFailure } from '../../errors.ts';

export interface GroupCommit<Item, Result> {
  submit(item: Item): Promise<Result>;
}

export interface GroupCommitOptions<Item, Result> {
  readonly maxItems: number;
  /** Owners take turns, so that one who brings much does not hold up the others. */
  readonly ownerOf: (item: Item) => string;
  /**
   * All or nothing, of all or, when they are too large for one commit, of the first of them; a result for each that was
   * committed, in their order. The others come again.
   */
  readonly commit: (items: readonly Item[]) => Promise<readonly Result[]>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** It was in a commit that failed, perhaps because of another one in it. */
  isAlone: boolean;
}

export function createGroupCommit<Item, Result>(options: GroupCommitOptions<Item, Result>): GroupCommit<Item, Result> {
  const queue = createTurnQueue<Waiting<Item, Result>>(({ item }) => options.ownerOf(item));
  let isRunning = false;

  async function run(): Promise<void> {
    while (queue.size > 0) await commitSome(takeSome());
    isRunning = false;
  }

  function takeSome(): Waiting<Item, Result>[] {
    const some: Waiting<Item, Result>[] = [];
    for (let next = queue.peek(); next !== undefined && some.length < options.maxItems; next = queue.peek()) {
      if (next.isAlone && some.length > 0) break;
      some.push(queue.take());
      if (next.isAlone) break;
    }
    return some;
  }

  async function commitSome(some: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.commit(some.map(({ item }) => item));
      for (const [index, result] of results.entries()) some[index]!.resolve(result);
      queue.putBack(some.slice(results.length));
    } catch (error) {
      if (some.length === 1 || !isOfOne(error)) {
        for (const { reject } of some) reject(error);
        return;
      }
      for (const one of some) one.isAlone = true;
      queue.putBack(some);
    }
  }

  return {
    submit: (item) =>
      new Promise((resolve, reject) => {
        queue.add({ item, resolve, reject, isAlone: false });
        if (isRunning) return;
        isRunning = true;
        // What other sockets bring in this turn of the event loop goes along.
        setImmediate(() => void run());
      }),
  };
}

/** First in, first out for each owner; one of each owner in turn. */
function createTurnQueue<Entry>(ownerOf: (entry: Entry) => string) {
  const entriesByOwner = new Map<string, Entry[]>();
  let size = 0;
  const findOrMake = (entry: Entry): Entry[] => {
    const entries = entriesByOwner.get(ownerOf(entry)) ?? [];
    entriesByOwner.set(ownerOf(entry), entries);
    return entries;
  };
  return {
    add: (entry: Entry): void => {
      findOrMake(entry).push(entry);
      size += 1;
    },
    /** Before those of the same owner that came later. */
    putBack: (entries: readonly Entry[]): void => {
      for (const entry of entries) findOrMake(entry);
      for (const entry of entries.toReversed()) findOrMake(entry).unshift(entry);
      size += entries.length;
    },
    /** What `take` would give. */
    peek: (): Entry | undefined => entriesByOwner.values().next().value?.[0],
    take: (): Entry => {
      const [owner, entries] = entriesByOwner.entries().next().value!;
      entriesByOwner.delete(owner);
      const entry = entries.shift()!;
      if (entries.length > 0) entriesByOwner.set(owner, entries);
      size -= 1;
      return entry;
    },
    get size() {
      return size;
    },
  };
}

/** Something was wrong with one of them, and the others must not suffer for it. A database that is away is so for all. */
function isOfOne(error: unknown): boolean {
  return !(isFailure(error) && error.code === 'unavailable');
}
