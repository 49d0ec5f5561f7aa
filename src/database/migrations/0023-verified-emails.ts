/** Adds the verified email address, which only one person may have. */
import type { Migration } from '../store.ts';

/** The address in lower case, once it is verified. A unique index keeps it from being verified for another person. */
export const verifiedEmails: Migration = {
  id: 23,
  name: 'verified-emails',
  statements: [
    'ALTER TABLE users ADD COLUMN verified_email_key {TEXT}',
    'CREATE UNIQUE INDEX users_by_verified_email ON users (verified_email_key)',
  ],
};
