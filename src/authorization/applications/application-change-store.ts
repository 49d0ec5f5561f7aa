/** Changes the settings of an OAuth application: two changes at once do not undo each other. */
import { isDeepStrictEqual } from 'node:util';
import { type BoundStatement, type Procedure, procedure } from '../../database/store.ts';
import { type ApplicationChange, applyChange } from './application-form.ts';
import { type Application, findApplicationIn, updateApplicationStatement } from './application-store.ts';

export interface StoredChange {
  readonly clientId: string;
  readonly change: ApplicationChange;
  readonly audit: BoundStatement;
}

/** Nothing is recorded when the application is so already. Undefined for one that is not there. Throws as `applyChange`. */
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
