/** Adds the parent and the repository limit of personal access tokens. */
import type { Migration } from '../store.ts';

/** Adds the personal token that created a personal token: both end together. */
export const personalTokenParents: Migration = {
  id: 22,
  name: 'personal-token-parents',
  statements: [
    'ALTER TABLE personal_tokens ADD COLUMN parent_id {TEXT}',
    'CREATE INDEX personal_tokens_by_parent ON personal_tokens (parent_id)',
  ],
};

/** Adds the repositories that a personal token is limited to: `owner/name` in lower case, separated by spaces; null: no limit. */
export const personalTokenRepositories: Migration = {
  id: 24,
  name: 'personal-token-repositories',
  isExpansion: true,
  statements: ['ALTER TABLE personal_tokens ADD COLUMN repositories {TEXT}'],
};
