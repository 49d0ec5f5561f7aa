/**
 * Groups items that arrive while a commit is under way into the next commit. Callers share the cost of a commit, and items of
 * one process that change the same rows do not wait for each other's transactions.
 */
import { Failure, isFailure } from '../../errors.ts';

export interface GroupCommit<Item, Result> {
  submit(item: Item): Promise<Result>;
  /** Throws `unavailable` if an item of this many bytes would be refused now. */
  checkRoom(owner: string, bytes: number): void;
}

export interface GroupCommitOptions<Item, Result> {
  readonly maxItems: number;
  /** Limit of the bytes of waiting items of one owner. Further items are refused, unless no other item of the owner waits. */
  readonly maxWaitingBytes: number;
  /**
   * Limit of the bytes of all waiting items, beyond which only small items are taken. Owners with waiting items share it equally, if that
   * is less than `maxWaitingBytes`.
   */
  readonly maxBytesOfAll: number;
  /** The size of an item that an owner without another may always have. */
  readonly smallBytes: number;
  readonly bytesOf: (item: Item) => number;
  /** Owners take turns, so that an owner with many items does not hold up the others. */
  readonly ownerOf: (item: Item) => string;
  /**
   * Stores all items that it takes, or none if it throws. Returns a result for each item, or undefined for an item that it leaves for the
   * next commit, where such items come first. It never leaves the first item.
   */
  readonly commit: (items: readonly Item[]) => Promise<readonly (Result | undefined)[]>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
  /** Whether it must commit alone, after a commit failed that had several items. */
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
      const left = some.filter((_, index) => results[index] === undefined);
      for (const [index, result] of results.entries()) if (result !== undefined) some[index]!.resolve(result);
      queue.putBack(left);
    } catch (error) {
      if (some.length === 1 || !isOfOne(error)) {
        for (const { reject } of some) reject(error);
        return;
      }
      for (const one of some) one.isAlone = true;
      queue.putBack(some);
    }
  }

  const bytesByOwner = createByteCounts(options);

  return {
    submit: async (item) => {
      using _waiting = bytesByOwner.add(item);
      return await new Promise((resolve, reject) => {
        queue.add({ item, resolve, reject, isAlone: false });
        if (isRunning) return;
        isRunning = true;
        // Waits for items that other sockets submit in this turn of the event loop, so that they are in the same commit.
        setImmediate(() => void run());
      });
    },
    checkRoom: (owner, bytes) => bytesByOwner.check(owner, bytes),
  };
}

type ByteLimits<Item> = Omit<GroupCommitOptions<Item, unknown>, 'maxItems' | 'commit'>;

/** Counts the waiting bytes of each owner and of all, from the submission of an item to its result. */
function createByteCounts<Item>(options: ByteLimits<Item>) {
  const { ownerOf, bytesOf, maxWaitingBytes, maxBytesOfAll, smallBytes } = options;
  let bytesByOwner = new Map<string, number>();
  let bytesOfAll = 0;
  const change = (owner: string, by: number): void => {
    bytesOfAll += by;
    const bytes = (bytesByOwner.get(owner) ?? 0) + by;
    if (bytes > 0) bytesByOwner.set(owner, bytes);
    else bytesByOwner.delete(owner);
    if (bytesByOwner.size === 0) bytesByOwner = new Map();
  };
  /** Throws `unavailable` if too many bytes of the owner, or of all owners, wait already. */
  const check = (owner: string, bytes: number): void => {
    const waiting = bytesByOwner.get(owner) ?? 0;
    const limit = Math.min(maxWaitingBytes, maxBytesOfAll / bytesByOwner.size);
    if (waiting > 0 && waiting + bytes > limit) throw refuseFull(`${waiting} bytes of events of this owner`);
    if (bytes > smallBytes && bytesOfAll >= maxBytesOfAll)
      throw refuseFull(`${bytesOfAll} bytes of events of all owners`);
  };
  return {
    check,
    add: (item: Item): Disposable => {
      const [owner, bytes] = [ownerOf(item), bytesOf(item)];
      check(owner, bytes);
      change(owner, bytes);
      return { [Symbol.dispose]: () => change(owner, -bytes) };
    },
  };
}

function refuseFull(waiting: string): Failure {
  const message = `Cannot take the event right now: ${waiting} are being stored`;
  return new Failure('unavailable', message, { retryAfterSeconds: 1 });
}

/** A queue that is first in, first out for each owner, and takes one entry of each owner in turn. */
function createTurnQueue<Entry>(ownerOf: (entry: Entry) => string) {
  let entriesByOwner = new Map<string, Entry[]>();
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
    /** Puts entries before all others, so that a large one does not wait while small ones keep arriving. */
    putBack: (entries: readonly Entry[]): void => {
      const others = [...entriesByOwner];
      entriesByOwner.clear();
      for (const entry of entries) findOrMake(entry).push(entry);
      for (const [owner, some] of others) entriesByOwner.set(owner, [...(entriesByOwner.get(owner) ?? []), ...some]);
      size += entries.length;
    },
    /** The entry that `take` would return. */
    peek: (): Entry | undefined => entriesByOwner.values().next().value?.[0],
    take: (): Entry => {
      const [owner, entries] = entriesByOwner.entries().next().value!;
      entriesByOwner.delete(owner);
      const entry = entries.shift()!;
      if (entries.length > 0) entriesByOwner.set(owner, entries);
      size -= 1;
      // A new map, since a long-lived Map with many deletions keeps garbage in V8's old generation (`memory/id-table.ts`).
      if (size === 0) entriesByOwner = new Map();
      return entry;
    },
    get size() {
      return size;
    },
  };
}

/** Whether a single item may have caused the error, so that the others are tried again. If the database is away, all items fail. */
function isOfOne(error: unknown): boolean {
  return !(isFailure(error) && error.code === 'unavailable');
}
