/**
 * Groups reads of the same turn of the event loop into one round trip to PostgreSQL. Equal reads share an answer. A read is sent
 * after all its callers have asked, so each of them sees everything that was committed before its call.
 */
import type { BoundStatement, Row, SqlValue, Statement } from '../store.ts';

/** The most concurrent round trips: with more, each would carry fewer reads. */
const MAX_UNDER_WAY = 2;
const MAX_STATEMENTS = 64;

export interface ReadGroup {
  read(statement: Statement<object>, parameters: readonly SqlValue[]): Promise<Row[]>;
}

interface WaitingRead {
  readonly bound: BoundStatement;
  readonly answer: PromiseWithResolvers<Row[]>;
}

export function createReadGroup(readAll: (statements: readonly BoundStatement[]) => Promise<Row[][]>): ReadGroup {
  let waiting = new Map<string, WaitingRead>();
  let underWay = 0;
  let isScheduled = false;

  const schedule = (): void => {
    if (isScheduled || underWay >= MAX_UNDER_WAY || waiting.size === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void run();
      schedule();
    });
  };

  async function run(): Promise<void> {
    const all = [...waiting];
    const some = all.slice(0, MAX_STATEMENTS);
    // A new map: one whose entries come and go leaves them in old memory (`memory/id-table.ts`).
    waiting = new Map(all.slice(MAX_STATEMENTS));
    underWay += 1;
    await answerAll(
      some.map(([, read]) => read),
      readAll,
    );
    underWay -= 1;
    schedule();
  }

  return {
    read: (statement, parameters) => {
      const key = `${statement.name} ${parameters.map(toKey).join(' ')}`;
      const read = waiting.get(key) ?? { bound: { statement, parameters }, answer: Promise.withResolvers<Row[]>() };
      waiting.set(key, read);
      schedule();
      return read.answer.promise;
    },
  };
}

/** Writes a value with its length, so that different lists of parameters have different keys. */
function toKey(value: SqlValue): string {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
  return `${typeof value} ${text.length} ${text}`;
}

/** A failed read must not fail the others, so each is then repeated separately. */
async function answerAll(
  reads: readonly WaitingRead[],
  readAll: (statements: readonly BoundStatement[]) => Promise<Row[][]>,
): Promise<void> {
  try {
    const answers = await readAll(reads.map(({ bound }) => bound));
    for (const [index, { answer }] of reads.entries()) answer.resolve(answers[index]!);
  } catch (error) {
    if (reads.length === 1) reads[0]!.answer.reject(error);
    else await Promise.all(reads.map((read) => answerAll([read], readAll)));
  }
}
