/**
 * Reads how accurate the served models are, for the overview: live errors, held-out errors of training, drift, slower servers.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import type { LiveScores } from '../live-accuracy/accuracy-sums.ts';
import { listDriftAlarms } from '../observations/drift-alarm-store.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { listServerMeans } from '../online/saved-live-model.ts';
import { listServerShifts, type ServerShift } from '../online/server-shifts.ts';
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import type { ConsoleModelsDependencies, ModelEntry } from './list-models.ts';
import { listPromotedModels } from './model-store.ts';

const DAY_MS = 24 * 3_600_000;
const LISTED_MODELS = 20;
const LISTED_SHIFTS = 10;
/** The percentage of times that should be below their p90. */
const NOMINAL_COVERAGE = 90;

/** Models that are served or were reported most come first. Live errors are of the served version only, like the held-out errors. */
export async function readModelHealth(
  { store, world, predictor }: ConsoleModelsDependencies,
  entries: readonly ModelEntry[],
) {
  const nowMs = world.nowMs();
  const [alarms, promoted] = await Promise.all([listDriftAlarms(store, nowMs - DAY_MS), listPromotedModels(store)]);
  const promotedAtMs = new Map(promoted.map((model) => [model.name, model.promotedAtMs]));
  const models = [];
  for (const entry of entries.toSorted(byImportance).slice(0, LISTED_MODELS)) {
    const { name } = entry;
    models.push({
      ...describeEntry(entry),
      // Earlier alarms were about another version.
      drift: alarms.filter((alarm) => alarm.targetModel === name && alarm.lastAtMs > (promotedAtMs.get(name) ?? 0)),
      shifts: listShifts(predictor, name),
    });
    await yieldToCalls();
  }
  return { models, modelCount: entries.length, nowMs };
}

function listShifts(predictor: SwappablePredictor, name: string): ServerShift[] {
  if (!predictor.hasModel(name)) return [];
  return listServerShifts(listServerMeans(predictor.live(name).learning.tracker)).slice(0, LISTED_SHIFTS);
}

function byImportance(one: ModelEntry, other: ModelEntry): number {
  const byService = Number(other.servedVersion !== undefined) - Number(one.servedVersion !== undefined);
  return byService || other.samples - one.samples;
}

function describeEntry({ name, servedVersion, versionCount, samples, learned, live }: ModelEntry) {
  const heldOut = new Map(
    learned.flatMap(({ podType, target, validation }) =>
      podType === 'all' && validation !== undefined ? [[target, validation.mape] as const] : [],
    ),
  );
  const targets = PREDICTION_TARGETS.map((target) => ({
    target,
    heldOutMape: heldOut.get(target) ?? null,
    nominalCoverage: NOMINAL_COVERAGE,
    ...describeLive(live?.[target]),
  }));
  return { name, servedVersion, versionCount, samples, targets };
}

/** Errors are null without reports. */
function describeLive(scores: LiveScores | undefined) {
  return { rows: scores?.rows ?? 0, liveMape: scores?.mape ?? null, liveCoverage: scores?.p90Coverage ?? null };
}
