/** Adds a foreign key from events to repositories, and deletes events without one. */
import type { Migration } from '../store.ts';

/**
 * An event belongs to a repository that exists. Without the key, events that were stored while their repository was deleted
 * stayed behind, and the intake had no answer for them.
 */
export const eventsOfRepositories: Migration = {
  id: 62,
  name: 'events of repositories',
  isExpansion: true,
  statements: [
    'DROP INDEX events_by_repository',
    'DROP INDEX events_by_time',
    'ALTER TABLE events RENAME TO events_without_key',
    `CREATE TABLE events (
      id {INT} NOT NULL PRIMARY KEY,
      repository_id {INT} NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
      kind {TEXT} NOT NULL,
      source {TEXT} NOT NULL,
      content {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL
    )`,
    `INSERT INTO events (id, repository_id, kind, source, content, created_at_ms)
     SELECT id, repository_id, kind, source, content, created_at_ms FROM events_without_key
     WHERE repository_id IN (SELECT id FROM repositories)`,
    'DROP TABLE events_without_key',
    'CREATE INDEX events_by_repository ON events (repository_id, id)',
    'CREATE INDEX events_by_time ON events (created_at_ms)',
  ],
};
