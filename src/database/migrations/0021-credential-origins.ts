/** Adds to each credential the person and the grant that it depends on. */
import type { Migration } from '../store.ts';

/**
 * Adds what each credential depends on: the epoch of its person, and the grant of its application. A credential is invalid if its
 * person has a higher epoch or its grant is gone.
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
    // Earlier programs compared times to end families after a change of the password.
    `UPDATE token_families SET revoked_at_ms = created_at_ms WHERE revoked_at_ms IS NULL AND EXISTS
       (SELECT 1 FROM users u WHERE u.id = token_families.user_id AND u.password_changed_at_ms > token_families.created_at_ms)`,
  ],
};
