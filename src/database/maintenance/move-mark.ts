/** Marks a SQLite store as moved around the commit of its copy in PostgreSQL, and explains a target that an earlier move has filled. */
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

/** The mark stays when it is not known whether the copy was committed. */
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

/** A target with rows may have them from a move whose end is not known. */
export function explainUsedTarget(error: unknown, { dataDir }: Pick<Move, 'dataDir'>): unknown {
  const unfinished = findUnfinishedMove(dataDir);
  if (unfinished === undefined || !isFailure(error) || error.details.isTargetUsed !== true) return error;
  const remedy = 'If these rows are its copy, set DATABASE_URL to use them; else empty the target and copy again';
  return new Failure(error.code, `${error.message}. ${unfinished} ${remedy}`, error.details);
}
