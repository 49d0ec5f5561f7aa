/** Adds when a person became an administrator, so that older applications gain no rights. */
import type { Migration } from '../../store.ts';

/**
 * When an ordinary person became an administrator, so that an older application gains no rights. Null for persons who were created
 * as administrators, and for administrators from before this migration.
 */
export const administratorSince: Migration = {
  id: 85,
  name: 'administrator-since',
  isExpansion: true,
  statements: ['ALTER TABLE users ADD COLUMN administrator_since_ms {INT}'],
};
