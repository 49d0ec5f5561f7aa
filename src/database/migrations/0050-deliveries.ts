import type { Migration } from '../store.ts';

/**
 * Deliveries, what they carry, what became of them, and the queue of the endpoints they wait for. A delivery's row is
 * small, since its update is what every attempt costs; the bytes that never change lie beside it.
 */
export const deliveries: Migration = {
  id: 50,
  name: 'deliveries',
  statements: [
    // "attempts" only rises and is the fencing token of a settlement; the schedule in force began at "schedule_from".
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
    // The first few of one endpoint, first attempts and retries apart, without a look at what is settled.
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
    // "version" rises with every enqueue, so that a worker never puts to rest an endpoint that has just got work.
    // "parked" keeps an enqueue from waking an endpoint that is held, cancelled or waits out a failure.
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
