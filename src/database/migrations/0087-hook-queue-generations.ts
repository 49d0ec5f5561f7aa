/** Adds how often the health of a hook queue was reset. */
import type { Migration } from '../store.ts';

/**
 * A person enables a hook or changes its URL, or a manual attempt is accepted: then what attempts under way come to says nothing about
 * the hook as it is now. The generation tells such attempts from later ones.
 */
export const hookQueueGenerations: Migration = {
  id: 87,
  name: 'hook-queue-generations',
  isExpansion: true,
  statements: ['ALTER TABLE endpoint_queue ADD COLUMN generation {INT} NOT NULL DEFAULT 0'],
};
