/** Creates the tables of repositories and webhooks. */
import type { Migration } from '../store.ts';

export const hooks: Migration = {
  id: 40,
  name: 'hooks',
  statements: [
    // Small numbers for ids that clients of the API v5 read as 32-bit integers.
    'CREATE TABLE webhook_numbers (name {TEXT} NOT NULL PRIMARY KEY, value {INT} NOT NULL)',

    `CREATE TABLE repositories (
      id {INT} NOT NULL PRIMARY KEY,
      owner_kind {TEXT} NOT NULL,
      owner_id {TEXT} NOT NULL,
      owner_login {TEXT} NOT NULL,
      path {TEXT} NOT NULL,
      path_key {TEXT} NOT NULL,
      name {TEXT} NOT NULL,
      description {TEXT} NOT NULL,
      is_private {INT} NOT NULL,
      default_branch {TEXT} NOT NULL,
      web_url {TEXT} NOT NULL,
      http_url {TEXT} NOT NULL,
      ssh_url {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      updated_at_ms {INT} NOT NULL
    )`,
    // Paths must differ by more than case, and of two concurrent creations only one can succeed.
    'CREATE UNIQUE INDEX repositories_by_path ON repositories (owner_id, path_key)',

    `CREATE TABLE hooks (
      id {INT} NOT NULL PRIMARY KEY,
      repository_id {INT} NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
      url {TEXT} NOT NULL,
      encryption_type {INT} NOT NULL,
      profile {TEXT} NOT NULL,
      secret {BLOB},
      previous_secret {BLOB},
      previous_until_ms {INT},
      push_events {INT} NOT NULL,
      tag_push_events {INT} NOT NULL,
      issues_events {INT} NOT NULL,
      note_events {INT} NOT NULL,
      merge_requests_events {INT} NOT NULL,
      result {TEXT},
      result_code {INT} NOT NULL,
      created_at_ms {INT} NOT NULL,
      updated_at_ms {INT} NOT NULL,
      disabled_at_ms {INT},
      disabled_reason {TEXT}
    )`,
    'CREATE INDEX hooks_by_repository ON hooks (repository_id, id)',

    `CREATE TABLE events (
      id {INT} NOT NULL PRIMARY KEY,
      repository_id {INT} NOT NULL,
      kind {TEXT} NOT NULL,
      source {TEXT} NOT NULL,
      content {TEXT} NOT NULL,
      created_at_ms {INT} NOT NULL
    )`,
    'CREATE INDEX events_by_repository ON events (repository_id, id)',
    'CREATE INDEX events_by_time ON events (created_at_ms)',

    // The answer to a repeated publication.
    `CREATE TABLE event_keys (
      repository_id {INT} NOT NULL,
      idempotency_key {TEXT} NOT NULL,
      fingerprint {TEXT} NOT NULL,
      answer {TEXT} NOT NULL,
      expires_at_ms {INT} NOT NULL,
      PRIMARY KEY (repository_id, idempotency_key)
    )`,
    'CREATE INDEX event_keys_by_expiry ON event_keys (expires_at_ms)',

    `CREATE TABLE hook_tests (
      user_id {TEXT} NOT NULL,
      hour {INT} NOT NULL,
      used {INT} NOT NULL,
      PRIMARY KEY (user_id, hour)
    )`,

    // The secret with which a code host signs its webhooks to us.
    `CREATE TABLE bridge_secrets (
      repository_id {INT} NOT NULL REFERENCES repositories (id) ON DELETE CASCADE,
      host {TEXT} NOT NULL,
      secret {BLOB} NOT NULL,
      created_at_ms {INT} NOT NULL,
      PRIMARY KEY (repository_id, host)
    )`,
  ],
};
