/** Adds whether a token without all rights may have set a way into an account. */
import type { Migration } from '../../store.ts';

/**
 * Whether a token without all rights may have set a way into the account. 1 for every account from before, since nothing
 * tells it of them any more, and for those that a process of an earlier release creates meanwhile.
 */
export const delegatedAccess: Migration = {
  id: 83,
  name: 'delegated-access',
  isExpansion: true,
  statements: ['ALTER TABLE users ADD COLUMN delegated_access {INT} NOT NULL DEFAULT 1'],
};
