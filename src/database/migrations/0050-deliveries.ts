/** Creates the tables of events, deliveries, attempts, and a queue for each hook (`endpoint_queue`). */
import type { Migration } from '../store.ts';

/**
 * Deliveries, their contents, the log of their attempts, and a queue for each hook (`endpoint_queue`). A delivery's row is small,
 * because every attempt updates it; the bytes that never change are in `delivery_contents`. docs/how-it-works/delivery.md explains
 * the columns.
 */
export const deliveries: Migration = {
  id: 50,
  name: 'deliveries',
  statements: [
    // "attempts" only rises. The schedule in force began at "schedule_from".
    `CREATE TABLE deliveries (
       hook_id {INT} NOT NULL,
       id {INT} NOT NULL,
       event_kind {TEXT} NOT NULL,
       state {TEXT} NOT NULL,
       lane {INT} NOT NULL,
       attempts {INT} NOT NULL,
       schedule_from {INT} NOT NULL,
       due_at_ms {INT} NOT NULL,
       status {INT} NOT NULL,
       body_bytes {INT} NOT NULL,
       created_at_ms {INT} NOT NULL,
       attempted_at_ms {INT},
       PRIMARY KEY (hook_id, id)
     )`,
    // Finds the first few pending deliveries of one hook, first attempts and retries separately, without reading ended ones.
    `CREATE INDEX deliveries_waiting ON deliveries (hook_id, lane, due_at_ms, id) WHERE state = 'pending'`,
    `CREATE TABLE delivery_contents (
       delivery_id {INT} NOT NULL PRIMARY KEY,
       hook_id {INT} NOT NULL,
       event_id {INT} NOT NULL,
       uuid {TEXT} NOT NULL,
       body {BLOB} NOT NULL
     )`,
    `CREATE TABLE delivery_attempts (
       delivery_id {INT} NOT NULL,
       id {INT} NOT NULL,
       attempt {INT} NOT NULL,
       started_at_ms {INT} NOT NULL,
       outcome {TEXT} NOT NULL,
       status {INT} NOT NULL,
       reason {TEXT},
       remote_address {TEXT},
       detail {TEXT} NOT NULL,
       response_body {BLOB},
       PRIMARY KEY (delivery_id, id)
     )`,
    // "version" rises with every enqueue, so that a worker never marks a row idle that has just got a delivery.
    // "parked" is 1 while an enqueue must not make the row due: the queue is paused, held or canceled.
    `CREATE TABLE endpoint_queue (
       hook_id {INT} NOT NULL PRIMARY KEY,
       owner_id {TEXT} NOT NULL,
       origin {TEXT} NOT NULL,
       shard {INT} NOT NULL,
       next_at_ms {INT} NOT NULL,
       version {INT} NOT NULL,
       parked {INT} NOT NULL,
       fails {INT} NOT NULL,
       failing_since_ms {INT},
       held_since_ms {INT},
       canceled_at_ms {INT}
     )`,
    'CREATE INDEX endpoint_queue_due ON endpoint_queue (next_at_ms, hook_id)',
    'CREATE INDEX endpoint_queue_parked ON endpoint_queue (origin) WHERE parked = 1',
    `CREATE TABLE delivery_shards (
       shard {INT} NOT NULL PRIMARY KEY,
       owner {TEXT} NOT NULL,
       epoch {INT} NOT NULL,
       expires_at_ms {INT} NOT NULL
     )`,
    `INSERT INTO delivery_shards (shard, owner, epoch, expires_at_ms)
     WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 255)
     SELECT n, '', 0, 0 FROM numbers`,
    `CREATE TABLE delivery_workers (
       owner {TEXT} NOT NULL PRIMARY KEY,
       expires_at_ms {INT} NOT NULL
     )`,
  ],
};
