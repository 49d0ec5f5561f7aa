import { Failure } from '../errors.ts';
import type { Procedure, Row, SqlValue, Statement, Transaction } from './store.ts';

type RunStatement = (statement: Statement<object>, parameters: readonly SqlValue[]) => Row[] | Promise<Row[]>;

/**
 * Runs a procedure over an engine's transaction. After a statement has failed nothing more may run in it, and the
 * procedure fails with that error whatever it does about it: PostgreSQL is like that, so SQLite has to be; and a
 * serialization failure must reach the one who tries again. A rejected `interruption` ends it early.
 */
export async function runProcedure<Input, Result>(
  procedure: Pick<Procedure<Input, Result>, 'name' | 'run'>,
  input: Input,
  runStatement: RunStatement,
  interruption: Promise<never>[] = [],
): Promise<Result> {
  let refusal: unknown;
  let isOver = false;
  const transaction: Transaction = {
    run: async <R extends object>(statement: Statement<R>, parameters: readonly SqlValue[]) => {
      if (refusal !== undefined) throw refusal;
      if (isOver) throw new Failure('internal', `Cannot go on in "${procedure.name}": its transaction is over`);
      try {
        return (await runStatement(statement, parameters)) as R[];
      } catch (error) {
        refusal = error;
        throw error;
      }
    },
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
