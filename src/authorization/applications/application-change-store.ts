/** Changes the settings of an OAuth application, so that concurrent changes do not undo each other. */
import { isDeepStrictEqual } from 'node:util';
import { type BoundStatement, type Procedure, procedure } from '../../database/store.ts';
import { type ApplicationChange, applyChange } from './application-form.ts';
import { type Application, findApplicationIn, updateApplicationStatement } from './application-store.ts';

export interface StoredChange {
  readonly clientId: string;
  readonly change: ApplicationChange;
  readonly audit: BoundStatement;
}

/** Returns undefined if there is no such application. Records nothing if nothing changes. Throws as `applyChange` does. */
export const changeApplicationOnce: Procedure<StoredChange, Application | undefined> = procedure(
  import.meta.url,
  'changeApplicationOnce',
  async (transaction, { clientId, change, audit }) => {
    const stored = await findApplicationIn(transaction, clientId);
    if (stored === undefined) return undefined;
    const updated = applyChange(stored, change);
    const update = updateApplicationStatement(updated);
    const isChanged = !isDeepStrictEqual(update.parameters, updateApplicationStatement(stored).parameters);
    if (isChanged) await transaction.runAll([update, audit]);
    return updated;
  },
);
