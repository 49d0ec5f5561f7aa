import type { Migration } from '../store.ts';

/** The repositories that a personal token is limited to, as `owner/name` in lower case with spaces between; null: no limit. */
export const personalTokenRepositories: Migration = {
  id: 24,
  name: 'personal-token-repositories',
  isExpansion: true,
  statements: ['ALTER TABLE personal_tokens ADD COLUMN repositories {TEXT}'],
};
