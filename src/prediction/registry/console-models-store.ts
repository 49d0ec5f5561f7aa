/** Reads for the console which versions were served, when and why, and which loads were observed. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { type Store, statement } from '../../database/store.ts';
import { MAX_AHEAD_MS } from '../observations/sample-store.ts';

/** A limit, because counting more would block a serving thread for longer than a few milliseconds. */
const COUNTED_SAMPLES = 10_000;
const COUNTED_MODELS = 500;
const MODELS_A_TURN = 4;
const LISTED_PROMOTIONS = 20;

const listPromotionsSql = statement<{ version: number; at_ms: number; reason: string; undone_at_ms: number | null }>(
  'model-admin-promotions',
  `SELECT version, at_ms, reason, undone_at_ms FROM model_promotions WHERE name = $1 ORDER BY number DESC LIMIT $2`,
);
const countByNameSql = statement<{ target_model: string; count: number }>(
  'model-admin-sample-counts',
  `SELECT target_model, COUNT(*) AS count FROM samples WHERE target_model > $1
   GROUP BY target_model ORDER BY target_model LIMIT $2`,
);
const countByLoadClassSql = statement<{ load_class: number; count: number }>(
  'model-admin-strata',
  `SELECT stratum AS load_class, COUNT(*) AS count FROM
     (SELECT stratum FROM samples WHERE target_model = $1 AND at_ms <= $2 ORDER BY at_ms DESC, id DESC LIMIT $3) AS newest
   GROUP BY stratum`,
);
const lastTrainingsSql = statement<{ target_model: string; at_ms: number; outcome: string }>(
  'model-admin-trainings',
  'SELECT target_model, at_ms, outcome FROM trainings',
);

export interface PastPromotion {
  readonly version: number;
  readonly atMs: number;
  readonly reason: string;
  readonly undoneAtMs: number | null;
}

/** Lists promotions, the newest first. */
export async function listPastPromotions(store: Store, name: string): Promise<PastPromotion[]> {
  const rows = await store.read(listPromotionsSql, [name, LISTED_PROMOTIONS]);
  return rows.map(({ version, at_ms, reason, undone_at_ms }) => ({
    version,
    atMs: at_ms,
    reason,
    undoneAtMs: undone_at_ms,
  }));
}

/** Answers calls between two reads, because each read scans all samples of its models. */
export async function countSamples(store: Store): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let last = ''; counts.size < COUNTED_MODELS; ) {
    const rows = await store.read(countByNameSql, [last, MODELS_A_TURN]);
    for (const { target_model, count } of rows) counts.set(target_model, count);
    if (rows.length < MODELS_A_TURN) break;
    last = rows.at(-1)!.target_model;
    await yieldToCalls();
  }
  return counts;
}

/** Returns how many of the newest samples are in each load class. */
export async function countLoadClasses(store: Store, name: string, nowMs: number): Promise<Map<number, number>> {
  const rows = await store.read(countByLoadClassSql, [name, nowMs + MAX_AHEAD_MS, COUNTED_SAMPLES]);
  return new Map(rows.map((row) => [row.load_class, row.count]));
}

export interface LastTraining {
  readonly atMs: number;
  /** `published`; `kept`: not better than the served one; `untested`: too few new rows to test it; or `overtaken`. */
  readonly outcome: string;
}

export async function listLastTrainings(store: Store): Promise<Map<string, LastTraining>> {
  const rows = await store.read(lastTrainingsSql);
  return new Map(rows.map((row) => [row.target_model, { atMs: row.at_ms, outcome: row.outcome }]));
}
