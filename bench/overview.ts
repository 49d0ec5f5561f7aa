/**
 * Measures how long the first page and the delivery log take to read a store with a million deliveries of 1,000 webhooks, a tenth
 * of them waiting: `node bench/overview.ts [sqlite|postgres]`. Each reading is made eleven times; the median is printed.
 */
import { rmSync } from 'node:fs';
import { type Store, statement } from '../src/database/store.ts';
import { listDeliveries } from '../src/webhooks/delivery/queue/delivery-log-store.ts';
import { listDeliveryMinutes } from '../src/webhooks/delivery/statistics/delivery-minute-store.ts';
import {
  countBacklog,
  countHooksInScope,
  findOldestWaiting,
  listTroubledHooks,
} from '../src/webhooks/hooks/overview-store.ts';
import { createStorePlace, engines, openTestStore, type TestEngine } from '../test/support/store/engines.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const HOOKS = 1000;
const DELIVERIES = 1_000_000;
const OWNERS = 50;
const DAY_MINUTES = 1440;
const RUNS = 11;

const numbers = (count: number) =>
  `WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count - 1})`;

const FILL = [
  `INSERT INTO repositories (id, owner_kind, owner_id, owner_login, path, path_key, name, description, is_private,
     default_branch, web_url, http_url, ssh_url, created_at_ms, updated_at_ms)
   ${numbers(HOOKS)} SELECT n + 1, 'user', 'owner' || (n % ${OWNERS}), 'owner', 'r' || n, 'r' || n, 'r', '', 0, 'main', '', '', '', 0, 0 FROM numbers`,
  `INSERT INTO hooks (id, repository_id, url, encryption_type, profile, push_events, tag_push_events, issues_events,
     note_events, merge_requests_events, result_code, created_at_ms, updated_at_ms)
   ${numbers(HOOKS)} SELECT n + 1, n + 1, 'https://example.org/' || n, 1, 'gitcode', 1, 0, 0, 0, 0, 200, 0, 0 FROM numbers`,
  `INSERT INTO endpoint_queue (hook_id, owner_id, origin, shard, next_at_ms, version, parked, fails, failing_since_ms)
   ${numbers(HOOKS)} SELECT n + 1, 'owner' || (n % ${OWNERS}), 'https://example.org', 0, 0, 1, 0, 0,
     CASE WHEN n % 3 = 0 THEN 1 END FROM numbers`,
  `INSERT INTO deliveries (hook_id, id, event_kind, state, lane, attempts, schedule_from, due_at_ms, status, body_bytes, created_at_ms, attempted_at_ms)
   ${numbers(DELIVERIES)} SELECT n % ${HOOKS} + 1, n + 1, 'push', CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'succeeded' END,
     n % 20 / 10, 1, 0, n, 200, 2, n, n FROM numbers`,
  `INSERT INTO delivery_contents (delivery_id, hook_id, event_id, uuid, body, subject)
   ${numbers(DELIVERIES)} SELECT n + 1, n % ${HOOKS} + 1, n, 'uuid', $1, 'main' FROM numbers`,
  `INSERT INTO delivery_attempts (delivery_id, id, attempt, started_at_ms, outcome, status, detail)
   ${numbers(DELIVERIES)} SELECT n + 1, n + 1, 1, n, 'accepted', 200, '{"timings_ms":{"total":12}}' FROM numbers`,
  `INSERT INTO delivery_minutes (owner_id, minute, accepted, failed, below_10, below_30, below_100, below_300, below_1000, below_3000, below_10000, longer)
   ${numbers(OWNERS * DAY_MINUTES)} SELECT 'owner' || (n % ${OWNERS}), n / ${OWNERS}, 9, 1, 10, 0, 0, 0, 0, 0, 0, 0 FROM numbers`,
];

async function fill(store: Store): Promise<void> {
  for (const [index, text] of FILL.entries())
    await store.write(statement(`bench_fill_${index}`, text), text.includes('$1') ? [Buffer.from('{}')] : []);
  // Autovacuum of PostgreSQL does this within a minute.
  await store.write(statement('bench-analyze', 'ANALYZE'));
}

const everything = {
  sinceMs: 0,
  untilMs: Number.MAX_SAFE_INTEGER,
  beforeId: Number.MAX_SAFE_INTEGER,
  limit: 26,
};

const READINGS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  'hooks by state': (store) => countHooksInScope(store, 'all', 0),
  'hooks in trouble': (store) => listTroubledHooks(store, 'all', 0),
  'backlog of all': (store) => countBacklog(store, 'all'),
  'backlog of one owner': (store) => countBacklog(store, ['owner1']),
  'oldest waiting': (store) => findOldestWaiting(store, 'all'),
  'minutes of all': (store) => listDeliveryMinutes(store, 'all', DAY_MINUTES - 60),
  'a page of the log': (store) => listDeliveries(store, { ...everything, hookId: 1 }),
  'the log by branch': (store) => listDeliveries(store, { ...everything, hookId: 1, subject: 'none' }),
};

async function measure(read: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const startMs = performance.now();
    await read();
    times.push(performance.now() - startMs);
  }
  return times.sort((one, other) => one - other)[Math.floor(RUNS / 2)] ?? 0;
}

const { positionals } = readBenchFlags({ allowPositionals: true });
const engine = (positionals[0] ?? 'sqlite') as TestEngine;
if (!engines.includes(engine)) throw new Error(`The engine must be ${engines.join(' or ')}, got "${engine}"`);
const place = await createStorePlace(engine);
try {
  await using store = await openTestStore(place);
  await fill(store);
  for (const [name, read] of Object.entries(READINGS))
    console.log(`${engine} ${name}: ${(await measure(() => read(store))).toFixed(1)} ms`);
} finally {
  rmSync(place.dataDir, { recursive: true, force: true });
}
