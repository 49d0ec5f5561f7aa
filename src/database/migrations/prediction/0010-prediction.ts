/** Creates the tables of prediction: model versions, promotions, requests, samples. */
import type { Migration } from '../../store.ts';

export const prediction: Migration = {
  id: 10,
  name: 'prediction',
  statements: [
    // Versions are never changed: a promotion points at one.
    `CREATE TABLE model_versions (
      name {TEXT} NOT NULL,
      version {INT} NOT NULL,
      parent_version {INT},
      created_at_ms {INT} NOT NULL,
      checksum {TEXT} NOT NULL,
      size_bytes {INT} NOT NULL,
      lineage {TEXT} NOT NULL,
      file {BLOB} NOT NULL,
      PRIMARY KEY (name, version)
    )`,
    // One row a name: the next version, and which one is served. Gone versions keep their number.
    `CREATE TABLE models (
      name {TEXT} NOT NULL PRIMARY KEY,
      last_version {INT} NOT NULL,
      promoted_version {INT},
      promoted_at_ms {INT}
    )`,
    // What was served when, newest last. A rollback undoes the newest that is not undone yet, and serves the one before.
    `CREATE TABLE model_promotions (
      name {TEXT} NOT NULL,
      number {INT} NOT NULL,
      version {INT} NOT NULL,
      at_ms {INT} NOT NULL,
      reason {TEXT} NOT NULL,
      undone_at_ms {INT},
      PRIMARY KEY (name, number)
    )`,
    // Requests whose events are still coming, in whatever order; also those just complete, to know a repetition.
    `CREATE TABLE pending_requests (
      request_id {TEXT} NOT NULL PRIMARY KEY,
      target_model {TEXT},
      input {TEXT},
      at_ms {INT} NOT NULL,
      ttft_ms {REAL},
      tpot_ms {REAL},
      has_finished {INT} NOT NULL,
      updated_at_ms {INT} NOT NULL
    )`,
    'CREATE INDEX pending_requests_by_update ON pending_requests (updated_at_ms)',
    // What models learn from: the newest rows, and of older ones some of every load of every server.
    `CREATE TABLE samples (
      id {INT} NOT NULL PRIMARY KEY,
      target_model {TEXT} NOT NULL,
      stratum {INT} NOT NULL,
      server_ip {TEXT} NOT NULL,
      pod_type {TEXT} NOT NULL,
      at_ms {INT} NOT NULL,
      input_token_length {REAL} NOT NULL,
      prefix_cache_score {REAL} NOT NULL,
      num_request_waiting {REAL} NOT NULL,
      num_request_running {REAL} NOT NULL,
      kv_cache_usage {REAL} NOT NULL,
      inflight_tokens {REAL} NOT NULL,
      hbm_utilization {REAL} NOT NULL,
      ai_core_utilization {REAL} NOT NULL,
      bandwidth_utilization {REAL} NOT NULL,
      ttft_ms {REAL},
      tpot_ms {REAL}
    )`,
    'CREATE INDEX samples_by_model ON samples (target_model, id)',
    // How far each model has learned, whichever process trained it.
    `CREATE TABLE trainings (
      target_model {TEXT} NOT NULL PRIMARY KEY,
      last_sample_id {INT} NOT NULL,
      at_ms {INT} NOT NULL,
      outcome {TEXT} NOT NULL
    )`,
    // What servers have shown lately and how the experts have done, as the serving process last wrote it down.
    `CREATE TABLE live_states (
      target_model {TEXT} NOT NULL PRIMARY KEY,
      saved_at_ms {INT} NOT NULL,
      content {TEXT} NOT NULL
    )`,
  ],
};
