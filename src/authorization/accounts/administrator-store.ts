/** Refuses to disable or demote the last administrator who can sign in. */
import { type Procedure, procedure, type Store, statement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { checkRole, type PersonChange } from './access-store.ts';

const activeAdministratorsSql = statement<{ id: string; can_sign_in: number }>(
  'active-administrators',
  `SELECT id, CASE WHEN password_changed_at_ms IS NOT NULL
       OR EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = users.id)
       OR EXISTS (SELECT 1 FROM upstream_accounts a WHERE a.user_id = users.id AND a.issuer = $1) THEN 1 ELSE 0 END AS can_sign_in
   FROM users WHERE is_admin = 1 AND disabled_at_ms IS NULL`,
);

/** An issuer that no linked account has. */
const NO_ISSUER = '';

export interface RightsChange extends PersonChange {
  /** The provider that people may sign in with; undefined without one. */
  readonly upstreamIssuer: string | undefined;
}

/** Whether an enabled administrator can sign in. Linked accounts count only at the provider that the service uses now. */
export async function canAnAdministratorSignIn(
  store: Pick<Store, 'read'>,
  upstreamIssuer: string | undefined,
): Promise<boolean> {
  return (await store.read(activeAdministratorsSql, [upstreamIssuer ?? NO_ISSUER])).some(
    ({ can_sign_in }) => can_sign_in === 1,
  );
}

/**
 * Returns false, and changes nothing, for the last administrator who can sign in. If two demote each other at once, the later
 * one is refused. Throws as `checkRole` does.
 */
export const disableOrDemoteOnce: Procedure<RightsChange, boolean> = procedure(
  import.meta.url,
  'disableOrDemoteOnce',
  async (transaction, { change, statements, upstreamIssuer = NO_ISSUER, ...access }) => {
    await checkRole(transaction, access);
    const { userId } = access;
    const administrators = await transaction.run(activeAdministratorsSql, [upstreamIssuer]);
    const person = administrators.find(({ id }) => id === userId);
    const others = administrators.filter(({ id }) => id !== userId);
    // An administrator who was just invited or promoted may have no way to sign in yet.
    const isLast = others.length === 0 || (person?.can_sign_in === 1 && !others.some((one) => one.can_sign_in === 1));
    if (person !== undefined && isLast) return false;
    if ((await transaction.run(change.statement, change.parameters)).length > 0) await transaction.runAll(statements);
    return true;
  },
);

/** Throws `conflict` for the last administrator who can sign in, and as `checkRole` does. */
export async function disableOrDemote(store: Store, change: RightsChange): Promise<void> {
  if (await store.call(disableOrDemoteOnce, change)) return;
  throw new Failure('conflict', 'Cannot disable or demote the user: this is the last administrator who can sign in');
}
