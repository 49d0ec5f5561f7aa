/** Stores verified email addresses, each of one person at most. */
import {
  type BoundStatement,
  type Procedure,
  procedure,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { checkAccess, checkRole } from './access-store.ts';

const userByVerifiedEmailSql = statement<{ id: string }>(
  'user-by-verified-email',
  'SELECT id FROM users WHERE verified_email_key = $1',
);
const hasVerifiedEmailSql = statement<{ id: string }>(
  'has-verified-email',
  'SELECT id FROM users WHERE id = $1 AND email = $2 AND verified_email_key = $3',
);
// $4: whether the row must still have the address $5, compared as text so that no address equals no address.
const setVerifiedEmailSql = statement<{ id: string }>(
  'set-seen-email-verified',
  `UPDATE users SET email = $2, verified_email_key = $3
   WHERE id = $1 AND ($4 = 0 OR COALESCE(email, '') = $5) AND epoch = COALESCE($6, epoch) RETURNING id`,
);

// No invisible characters and none that change the text direction: an administrator who verifies an address has to see it.
const EMAIL =
  /^[^\s@<>"\u2800\p{DI}\p{Cc}\p{Cf}\p{Cs}\p{Co}]{1,64}@[^\s@<>"\u2800\p{DI}\p{Cc}\p{Cf}\p{Cs}\p{Co}]{1,190}$/u;

export function isEmail(text: string): boolean {
  return EMAIL.test(text);
}

/** Throws `invalid` unless the text has the form of an email address. */
export function checkEmail(email: string): void {
  if (isEmail(email)) return;
  throw new Failure('invalid', `Cannot save the profile: "${email}" is not an email address`, { field: 'email' });
}

/** Addresses that differ only in letter case have the same key. */
export function emailKey(email: string | null): string | null {
  return email?.toLowerCase() ?? null;
}

/** Throws `conflict` if the address is verified for any account, which rolls back the transaction. */
export async function checkEmailFree(transaction: Transaction, email: string | null): Promise<void> {
  if ((await transaction.run(userByVerifiedEmailSql, [emailKey(email)])).length > 0) throw refuseEmail(email);
}

function refuseEmail(email: string | null): Failure {
  const message = `Cannot save the email address: "${email}" is the verified address of another account`;
  return new Failure('conflict', message, { field: 'email' });
}

export async function isVerifiedEmailTaken(store: Store, email: string): Promise<boolean> {
  return (await store.read(userByVerifiedEmailSql, [emailKey(email)])).length > 0;
}

export interface EmailVerification {
  readonly userId: string;
  readonly email: string;
  /** The address that the account had when the decision was made; if it has another one by now, nothing changes. */
  readonly seenEmail?: string | null;
  /** The generation under which the person authenticated at a provider; if it was raised since, nothing changes. */
  readonly credentialGeneration?: number;
  /** Whether the actor who vouches for the address has all rights; true when absent, as for a provider that verified it. */
  readonly hasAllRights?: boolean;
  /** Committed with it. */
  readonly statements: readonly BoundStatement[];
}

/**
 * Nothing is recorded for an address that is verified already. `taken`: the address is verified for another account.
 * `changed`: the account no longer has the address that was seen.
 */
export const verifyEmailOnce: Procedure<EmailVerification, 'verified' | 'taken' | 'changed'> = procedure(
  import.meta.url,
  'verifyEmailOnce',
  async (transaction, { userId, email, seenEmail, credentialGeneration = null, hasAllRights = true, statements }) => {
    await checkRole(transaction, { userId, hasAllRights });
    const key = emailKey(email);
    const [owner] = await transaction.run(userByVerifiedEmailSql, [key]);
    if (owner !== undefined && owner.id !== userId) return 'taken';
    if ((await transaction.run(hasVerifiedEmailSql, [userId, email, key])).length > 0) return 'verified';
    const seen = [seenEmail === undefined ? 0 : 1, seenEmail ?? ''];
    if ((await transaction.run(setVerifiedEmailSql, [userId, email, key, ...seen, credentialGeneration])).length === 0)
      return 'changed';
    // Comes last because it marks the account: an account whose address stays is not marked.
    await checkAccess(transaction, { userId, hasAllRights });
    await transaction.runAll(statements);
    return 'verified';
  },
);

/** Sets the address as verified: the caller vouches for it. Throws `conflict` if it is taken or has changed. */
export async function verifyEmail(store: Store, verification: EmailVerification): Promise<void> {
  const { email } = verification;
  checkEmail(email);
  const outcome = await store.call(verifyEmailOnce, verification);
  if (outcome === 'taken') throw refuseEmail(email);
  if (outcome === 'changed')
    throw new Failure('conflict', `Cannot verify "${email}": the account has another address by now`);
}
