/** How accurate the served models are, for the first page: live errors beside those of training, drift, and slower or faster servers. */
import { listDriftAlarms } from '../observations/drift-alarm-store.ts';
import type { SlotAccuracy } from '../online/live-accuracy.ts';
import { listServerShifts } from '../online/server-shifts.ts';
import { TARGETS, type Target } from '../schema/observation-table.ts';
import type { ModelAdminDependencies, ModelEntry } from './model-admin.ts';

const DAY_MS = 24 * 3_600_000;
const LISTED_MODELS = 20;
const LISTED_SHIFTS = 10;
/** What a p90 promises. */
const PROMISED_COVERAGE = 90;

/** Those that were reported most, or are served, first. */
export async function readModelHealth(
  { store, world, predictor, accuracy }: ModelAdminDependencies,
  entries: readonly ModelEntry[],
) {
  const nowMs = world.nowMs();
  const alarms = await listDriftAlarms(store, nowMs - DAY_MS);
  const models = entries
    .map(({ name, servedVersion, versionCount, samples, learned }) => {
      const slots = accuracy.listSlots(name, nowMs);
      const promised = new Map(
        learned.flatMap(({ podType, target, validation }) =>
          podType === 'all' && validation !== undefined ? [[target, validation.mape] as const] : [],
        ),
      );
      return {
        name,
        servedVersion,
        versionCount,
        samples,
        targets: TARGETS.map((target) => ({
          target,
          promisedMape: promised.get(target) ?? null,
          promisedCoverage: PROMISED_COVERAGE,
          ...sumSlots(slots, target),
        })),
        drift: alarms.filter((alarm) => alarm.targetModel === name),
        shifts: predictor.hasModel(name)
          ? listServerShifts(predictor.live(name).save().servers).slice(0, LISTED_SHIFTS)
          : [],
      };
    })
    .sort(
      (one, other) =>
        Number(other.servedVersion !== undefined) - Number(one.servedVersion !== undefined) ||
        other.samples - one.samples,
    );
  return { models: models.slice(0, LISTED_MODELS), modelCount: models.length };
}

/** Over the parts of a model, weighted by their answers; null without any. */
function sumSlots(slots: readonly SlotAccuracy[], target: Target) {
  const own = slots.filter((slot) => slot.target === target);
  const rows = own.reduce((total, { scores }) => total + scores.rows, 0);
  const mean = (read: (slot: SlotAccuracy) => number) =>
    rows === 0 ? null : own.reduce((total, slot) => total + slot.scores.rows * read(slot), 0) / rows;
  return { rows, liveMape: mean(({ scores }) => scores.mape), liveCoverage: mean(({ scores }) => scores.p90Coverage) };
}
