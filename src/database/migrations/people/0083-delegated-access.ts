/** Adds whether a token without all rights may have set up a sign-in method of an account. */
import type { Migration } from '../../store.ts';

/**
 * Whether a token without all rights may have set up a sign-in method (password, passkey) of the account. 1 for every older account,
 * since this is no longer known, and for those that a process of an earlier release creates meanwhile.
 */
export const delegatedAccess: Migration = {
  id: 83,
  name: 'delegated-access',
  isExpansion: true,
  statements: ['ALTER TABLE users ADD COLUMN delegated_access {INT} NOT NULL DEFAULT 1'],
};
