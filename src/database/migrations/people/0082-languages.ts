/** Adds the language that a person chose for pages and mails. */
import type { Migration } from '../../store.ts';

/** The language that a person chose for pages and mails; null without a choice. */
export const languages: Migration = {
  id: 82,
  name: 'languages',
  isExpansion: true,
  statements: ['ALTER TABLE users ADD COLUMN language {TEXT}'],
};
