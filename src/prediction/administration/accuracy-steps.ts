/** Divides the live accuracy of a model into time steps, each as short as the store still keeps. */
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { OutputOf } from '../../operations/operation.ts';
import type { World } from '../../world.ts';
import {
  type AccuracySeries,
  readAccuracyOverTime,
  readServerOverTime,
  type SeriesQuery,
} from '../live-accuracy/read-accuracy.ts';
import { listModelVersions } from '../registry/model-store.ts';
import type { readAccuracy } from './accuracy-operations.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const KEPT_MS = 30 * DAY_MS;
const DEFAULT_LENGTH_MS = 12 * HOUR_MS;
/** A call may be under way for this long, and the clock of its caller may be ahead by as much. */
const CALL_MS = MINUTE_MS;
/** The lengths of steps, and how long each is kept; the shortest first. */
const POD_TYPE_STEPS = [
  { lengthMs: 12 * HOUR_MS, stepMs: 5 * MINUTE_MS },
  { lengthMs: 7 * DAY_MS, stepMs: HOUR_MS },
] as const;
const SERVER_STEPS = [{ lengthMs: DAY_MS, stepMs: HOUR_MS }] as const;
const LONGEST_STEP_MS = 6 * HOUR_MS;

interface AccuracyInput {
  readonly model: string;
  readonly since?: string | undefined;
  readonly server?: string | undefined;
}

/** Throws `not_found` for an unknown model, and `invalid` for a time too long ago. */
export async function readSteps(
  { store, world }: { readonly store: Store; readonly world: Pick<World, 'nowMs'> },
  { model, since, server }: AccuracyInput,
): Promise<OutputOf<typeof readAccuracy>> {
  const query = chooseSteps(since, world.nowMs(), server === undefined ? POD_TYPE_STEPS : SERVER_STEPS);
  const ofModel: SeriesQuery = { targetModel: model, ...query };
  const found =
    server === undefined
      ? await readAccuracyOverTime(store, ofModel)
      : await readServerOverTime(store, ofModel, server);
  if (found.length === 0) await checkKnown(store, model);
  return { model, ...query, series: found.map((series) => toJson(series, server)) };
}

/** A name without versions is known if the prior has predicted for it, because then there are reports. */
async function checkKnown(store: Store, model: string): Promise<void> {
  if ((await listModelVersions(store, model)).length > 0) return;
  throw new Failure('not_found', `Cannot show the accuracy of "${model}": there is no such model and no report of one`);
}

function chooseSteps(
  since: string | undefined,
  nowMs: number,
  steps: typeof POD_TYPE_STEPS | typeof SERVER_STEPS,
): Pick<SeriesQuery, 'fromMs' | 'stepMs'> {
  const askedMs = since === undefined ? nowMs - DEFAULT_LENGTH_MS : Date.parse(since);
  if (askedMs > nowMs + CALL_MS) throw refuseSince(since, 'must not be in the future');
  const sinceMs = Math.min(askedMs, nowMs);
  // A caller that wants the last 30 days computes the time before its call, so this time may be a little older.
  const lengthMs = nowMs - sinceMs - (since === undefined ? 0 : CALL_MS);
  if (lengthMs > KEPT_MS) throw refuseSince(since, 'must be at most 30 days ago: older reports are not kept');
  const stepMs = steps.find((step) => lengthMs <= step.lengthMs)?.stepMs ?? LONGEST_STEP_MS;
  return { fromMs: sinceMs - (sinceMs % stepMs), stepMs };
}

function refuseSince(since = '', rule: string): Failure {
  return new Failure('invalid', `Cannot show the accuracy: since ${rule}, got "${since}"`, { field: 'since' });
}

function toJson({ part, target, points }: AccuracySeries, server: string | undefined) {
  const named = server === undefined ? { podType: part } : { server };
  return {
    ...named,
    target,
    points: points.map(({ startMs, version, scores }) => ({
      startMs,
      ...(server === undefined ? { version } : {}),
      ...scores,
    })),
  };
}
