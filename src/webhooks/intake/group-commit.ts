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
  /** All or nothing; a result an item, in their order. */
  readonly commit: (items: readonly Item[]) => Promise<readonly Result[]>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export function createGroupCommit<Item, Result>(options: GroupCommitOptions<Item, Result>): GroupCommit<Item, Result> {
  const waiting: Waiting<Item, Result>[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    while (waiting.length > 0) await commitSome(waiting.splice(0, options.maxItems));
    isRunning = false;
  }

  async function commitSome(some: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await options.commit(some.map(({ item }) => item));
      for (const [index, { resolve }] of some.entries()) resolve(results[index]!);
    } catch (error) {
      if (some.length > 1 && isOfOne(error)) for (const one of some) await commitSome([one]);
      else for (const { reject } of some) reject(error);
    }
  }

  return {
    submit: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        if (isRunning) return;
        isRunning = true;
        // What other sockets bring in this turn of the event loop goes along.
        setImmediate(() => void run());
      }),
  };
}

/** Something was wrong with one of them, and the others must not suffer for it. A database that is away is so for all. */
function isOfOne(error: unknown): boolean {
  return !(isFailure(error) && error.code === 'unavailable');
}
