/** Changes the name and the email address that a person gives. A changed address is no longer verified. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import { changeAndRecord } from '../accounts/audit-store.ts';
import { emailKey } from '../accounts/email-store.ts';
import { checkProfile, findUserById, type Profile } from '../accounts/user-store.ts';

// Returns no row if name and address are already the same.
const updateProfileSql = statement<{ id: string }>(
  'update-profile',
  `UPDATE users SET name = $2, email = $3,
     verified_email_key = CASE WHEN verified_email_key = $4 THEN verified_email_key ELSE NULL END
   WHERE id = $1 AND (name <> $2 OR COALESCE(email, '') <> COALESCE($3, '')) RETURNING id`,
);

/** Commits the statements with the change. Returns false if there was nothing to change. */
export async function changeProfile(
  store: Store,
  userId: string,
  { statements = [], ...profile }: Profile & { readonly statements?: readonly BoundStatement[] },
): Promise<boolean> {
  checkProfile(profile, (await findUserById(store, userId))?.name);
  const parameters = [userId, profile.name.trim(), profile.email, emailKey(profile.email)];
  return await store.call(changeAndRecord, { change: { statement: updateProfileSql, parameters }, statements });
}
