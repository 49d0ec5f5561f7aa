/** Adds how often the health of a hook queue was reset. */
import type { Migration } from '../store.ts';

/**
 * When a person enables a hook or changes its URL, or a manual attempt succeeds, the outcomes of running attempts say nothing about
 * the current state of the hook. The generation distinguishes such attempts from later ones.
 */
export const hookQueueGenerations: Migration = {
  id: 87,
  name: 'hook-queue-generations',
  isExpansion: true,
  statements: ['ALTER TABLE endpoint_queue ADD COLUMN generation {INT} NOT NULL DEFAULT 0'],
};
