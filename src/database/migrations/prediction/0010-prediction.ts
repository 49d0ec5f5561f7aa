/** Creates the tables of prediction: model versions, promotions, requests, samples. */
import type { Migration } from '../../store.ts';

export const prediction: Migration = {
  id: 10,
  name: 'prediction',
  statements: [
    // Versions are immutable: a promotion refers to one.
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
    // One row for each name: the next version, and the served one. Numbers of deleted versions are not reused.
    `CREATE TABLE models (
      name {TEXT} NOT NULL PRIMARY KEY,
      last_version {INT} NOT NULL,
      promoted_version {INT},
      promoted_at_ms {INT}
    )`,
    // The served versions over time, newest last. A rollback undoes the newest promotion that is not undone, and serves the previous one.
    `CREATE TABLE model_promotions (
      name {TEXT} NOT NULL,
      number {INT} NOT NULL,
      version {INT} NOT NULL,
      at_ms {INT} NOT NULL,
      reason {TEXT} NOT NULL,
      undone_at_ms {INT},
      PRIMARY KEY (name, number)
    )`,
    // Requests whose events are still arriving, in any order; also recently completed ones, to recognize repetitions.
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
    // The training rows: the newest ones, and a sample of older ones for every load of every server.
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
    // The training progress of each model, whichever process trained it.
    `CREATE TABLE trainings (
      target_model {TEXT} NOT NULL PRIMARY KEY,
      last_sample_id {INT} NOT NULL,
      at_ms {INT} NOT NULL,
      outcome {TEXT} NOT NULL
    )`,
    // The online state: recent observations of servers and expert weights, as the serving process last saved it.
    `CREATE TABLE live_states (
      target_model {TEXT} NOT NULL PRIMARY KEY,
      saved_at_ms {INT} NOT NULL,
      content {TEXT} NOT NULL
    )`,
  ],
};
