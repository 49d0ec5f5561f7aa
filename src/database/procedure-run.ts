/** Runs a registered procedure: a transaction that reads before it writes. */
import { Failure } from '../errors.ts';
import type { BoundStatement, Procedure, Row, Transaction } from './store.ts';

type RunStatements = (statements: readonly BoundStatement[]) => Row[][] | Promise<Row[][]>;

/**
 * Runs a procedure in an engine's transaction. After a failed statement no other may run in it, and the procedure fails with that
 * error even if it catches it: PostgreSQL behaves like this, so SQLite must too, and a serialization failure must reach the code
 * that retries. A rejected `interruption` ends it early.
 */
export async function runProcedure<Input, Result>(
  procedure: Pick<Procedure<Input, Result>, 'name' | 'run'>,
  input: Input,
  runStatements: RunStatements,
  interruption: Promise<never>[] = [],
): Promise<Result> {
  let refusal: unknown;
  let isOver = false;
  const runAll = async (statements: readonly BoundStatement[]): Promise<Row[][]> => {
    if (refusal !== undefined) throw refusal;
    if (isOver) throw new Failure('internal', `Cannot go on in "${procedure.name}": its transaction is over`);
    try {
      return await runStatements(statements);
    } catch (error) {
      refusal = error;
      throw error;
    }
  };
  const transaction: Transaction = {
    run: async (statement, parameters) => (await runAll([{ statement, parameters }]))[0] as never,
    runAll: async (statements) => (statements.length === 0 ? [] : await runAll(statements)),
  };
  try {
    const result = await Promise.race([procedure.run(transaction, input), ...interruption]);
    if (refusal !== undefined) throw refusal;
    return result;
  } catch (error) {
    throw refusal ?? error;
  } finally {
    isOver = true;
  }
}
