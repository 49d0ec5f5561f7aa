/** Adds to each credential the person and the grant that it depends on. */
import type { Migration } from '../store.ts';

/**
 * What each credential hangs on: the epoch of its person, and the grant that its application has. A credential whose
 * person has a higher epoch, or whose grant is gone, is dead.
 */
export const credentialOrigins: Migration = {
  id: 21,
  name: 'credential-origins',
  statements: [
    'ALTER TABLE users ADD COLUMN epoch {INT} NOT NULL DEFAULT 0',
    'ALTER TABLE sessions ADD COLUMN user_epoch {INT} NOT NULL DEFAULT 0',
    `ALTER TABLE consents ADD COLUMN grant_id {TEXT} NOT NULL DEFAULT ''`,
    ...['authorization_codes', 'device_codes', 'token_families'].flatMap((table) => [
      `ALTER TABLE ${table} ADD COLUMN user_epoch {INT} NOT NULL DEFAULT 0`,
      `ALTER TABLE ${table} ADD COLUMN grant_id {TEXT} NOT NULL DEFAULT ''`,
    ]),
    // Until here a change of the password ended families by comparing times.
    `UPDATE token_families SET revoked_at_ms = created_at_ms WHERE revoked_at_ms IS NULL AND EXISTS
       (SELECT 1 FROM users u WHERE u.id = token_families.user_id AND u.password_changed_at_ms > token_families.created_at_ms)`,
  ],
};
