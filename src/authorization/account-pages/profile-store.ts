/** Changes the name and the address that a person gives. An address that changes is not verified any more. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import { emailKey } from '../accounts/email-store.ts';
import {
  checkProfile,
  findUserById,
  type Profile,
  toUser,
  USER_COLUMNS,
  type User,
  type UserRow,
} from '../accounts/user-store.ts';

const updateProfileSql = statement<UserRow>(
  'update-profile',
  `UPDATE users SET name = $2, email = $3,
     verified_email_key = CASE WHEN verified_email_key = $4 THEN verified_email_key ELSE NULL END
   WHERE id = $1 RETURNING ${USER_COLUMNS}`,
);

/** Commits the statements with the change. */
export async function changeProfile(
  store: Store,
  userId: string,
  { statements = [], ...profile }: Profile & { readonly statements?: readonly BoundStatement[] },
): Promise<User | undefined> {
  checkProfile(profile, (await findUserById(store, userId))?.name);
  const parameters = [userId, profile.name.trim(), profile.email, emailKey(profile.email)];
  const [changed] = await store.writeAll([{ statement: updateProfileSql, parameters }, ...statements]);
  return (changed as unknown as UserRow[]).map(toUser)[0];
}
