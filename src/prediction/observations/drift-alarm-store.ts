/** Stores drift alarms, and lists those of a period. */
import { type BoundStatement, type Row, type Statement, type Store, statement } from '../../database/store.ts';
import { deleteOldSql, repeatBatches, SWEEP_WITHOUT_PAUSES, type SweepPace } from '../../database/sweep.ts';
import type { DriftCause } from '../online/drift.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';

const HOUR_MS = 3_600_000;
export const KEEP_ALARMS_MS = 30 * 24 * HOUR_MS;
const LISTED_ALARMS = 200;

const addAlarmSql: Statement<Row> = statement(
  'drift-alarm-add',
  `INSERT INTO drift_alarms (target_model, hour, target, cause, alarms, last_at_ms) VALUES ($1, $2, $3, $4, $5, $6)
   ON CONFLICT (target_model, hour, target, cause)
   DO UPDATE SET alarms = drift_alarms.alarms + excluded.alarms, last_at_ms = excluded.last_at_ms`,
);
const alarmsSinceSql: Statement<Row & AlarmRow> = statement(
  'drift-alarms-since',
  `SELECT target_model, target, cause, CAST(SUM(alarms) AS BIGINT) AS alarms, MAX(last_at_ms) AS last_at_ms
   FROM drift_alarms WHERE hour >= $1 GROUP BY target_model, target, cause ORDER BY last_at_ms DESC LIMIT ${LISTED_ALARMS}`,
);
const alarmHoursSql: Statement<Row & AlarmHourRow> = statement(
  'drift-alarm-hours',
  `SELECT hour, target, cause, alarms FROM drift_alarms WHERE target_model = $1 AND hour >= $2 ORDER BY hour, target, cause`,
);
const forgetAlarmsSql = deleteOldSql({
  table: 'drift_alarms',
  key: 'target_model, hour, target, cause',
  time: 'hour',
});

interface AlarmRow {
  readonly target_model: string;
  readonly target: PredictionTarget;
  readonly cause: DriftCause;
  readonly alarms: number;
  readonly last_at_ms: number;
}

interface AlarmHourRow {
  readonly hour: number;
  readonly target: PredictionTarget;
  readonly cause: DriftCause;
  readonly alarms: number;
}

export interface DriftAlarmHour {
  readonly startMs: number;
  readonly target: PredictionTarget;
  readonly cause: DriftCause;
  readonly count: number;
}

export interface DriftAlarms {
  readonly targetModel: string;
  readonly target: PredictionTarget;
  readonly cause: DriftCause;
  readonly count: number;
  readonly lastAtMs: number;
}

export function addAlarmsStatements(alarms: readonly DriftAlarms[]): BoundStatement[] {
  return alarms.map(({ targetModel, target, cause, count, lastAtMs }) => ({
    statement: addAlarmSql,
    parameters: [targetModel, hourOf(lastAtMs), target, cause, count, lastAtMs],
  }));
}

/** Alarms are counted by hour. */
export function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}

/** Lists one element for each model, target and cause, the newest first. */
export async function listDriftAlarms(store: Store, sinceMs: number): Promise<DriftAlarms[]> {
  const rows = await store.read(alarmsSinceSql, [hourOf(sinceMs)]);
  return rows.map(({ target_model, target, cause, alarms, last_at_ms }) => ({
    targetModel: target_model,
    target,
    cause,
    count: Number(alarms),
    lastAtMs: last_at_ms,
  }));
}

/** The hours with alarms of one model, oldest first. */
export async function listDriftAlarmHours(store: Store, name: string, sinceMs: number): Promise<DriftAlarmHour[]> {
  const rows = await store.read(alarmHoursSql, [name, hourOf(sinceMs)]);
  return rows.map(({ hour, alarms, target, cause }) => ({ startMs: hour * HOUR_MS, target, cause, count: alarms }));
}

/** Deletes old alarms, and returns their number. */
export async function forgetDriftAlarms(
  store: Store,
  nowMs: number,
  pace: SweepPace = SWEEP_WITHOUT_PAUSES,
): Promise<number> {
  const lastHour = hourOf(nowMs - KEEP_ALARMS_MS) - 1;
  return await repeatBatches(pace, async (limit) => (await store.write(forgetAlarmsSql, [lastHour, limit])).length);
}
