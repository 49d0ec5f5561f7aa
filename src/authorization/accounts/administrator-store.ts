/** Taking rights away: a service keeps at least one administrator who can sign in. */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';

const activeAdministratorsSql = statement<{ id: string }>(
  'active-administrators',
  'SELECT id FROM users WHERE is_admin = 1 AND disabled_at_ms IS NULL ORDER BY id LIMIT 2',
);

export interface Withdrawal {
  readonly userId: string;
  /** What takes the rights, and what is recorded of it. */
  readonly statements: readonly BoundStatement[];
}

/** False when the person is the last administrator: two who remove each other at once are judged one after the other. */
export const withdrawOnce: Procedure<Withdrawal, boolean> = procedure(
  import.meta.url,
  'withdrawOnce',
  async (transaction, { userId, statements }) => {
    const left = await transaction.run(activeAdministratorsSql, []);
    if (left.length === 1 && left[0]?.id === userId) return false;
    await transaction.runAll(statements);
    return true;
  },
);

/** Throws `conflict` for the last administrator. */
export async function withdraw(store: Store, withdrawal: Withdrawal): Promise<void> {
  if (await store.call(withdrawOnce, withdrawal)) return;
  throw new Failure('conflict', 'Cannot take the rights: this is the last administrator who can sign in');
}
