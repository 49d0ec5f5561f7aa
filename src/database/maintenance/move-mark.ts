/** Marks a SQLite store as moved before its copy in PostgreSQL is committed, and explains a target that an earlier move has filled. */
import { Failure, isFailure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { isConnectionLost, isRefusedUndone } from '../postgres/postgres-pool.ts';
import { beginMove, findUnfinishedMove } from '../startup/copied-store.ts';
import type { TableConnection } from './table-connection.ts';

export interface Move {
  readonly dataDir: string;
  /** The name of the target, without a password. */
  readonly target: string;
  readonly world: Pick<World, 'nowMs'>;
}

/** The mark stays when the outcome of the commit is unknown. */
export function withMoveMark(connection: TableConnection, { dataDir, target, world }: Move): TableConnection {
  return {
    ...connection,
    commit: async () => {
      const mark = beginMove(dataDir, target, world.nowMs());
      try {
        await connection.commit();
      } catch (error) {
        if (!isConnectionLost(error) || isRefusedUndone(error)) mark.undo();
        throw error;
      }
      mark.complete(world.nowMs());
    },
  };
}

/** The rows of a target may come from an earlier move whose outcome is unknown. */
export function explainUsedTarget(error: unknown, { dataDir }: Pick<Move, 'dataDir'>): unknown {
  const unfinished = findUnfinishedMove(dataDir);
  if (unfinished === undefined || !isFailure(error) || error.details.isTargetUsed !== true) return error;
  const remedy = 'If these rows are its copy, set DATABASE_URL to use them; else empty the target and copy again';
  return new Failure(error.code, `${error.message}. ${unfinished} ${remedy}`, error.details);
}
