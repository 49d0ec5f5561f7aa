/**
 * What a live model has learned from reports, as groups of decayed sums: after an event, each sum is its decay times
 * itself, plus what the event adds. So the events of a process add up to `decay ** events` times what was there before,
 * plus one vector, whatever they found: that vector is all that others must know. Means and losses count an event by its
 * certainty, so there the exponent is the sum of certainties. Beside the sums, a slot keeps the newest residuals.
 */
import { LOSS_DECAY, type SavedExperts } from '../online/expert-weights.ts';
import { EXPERT_COUNT } from '../online/experts.ts';
import { COVERAGE_DECAY, KEPT, MAX_LEVEL, MIN_LEVEL, QUANTILE_LEVELS } from '../online/intervals/conformal.ts';
import { FEEDBACK_DELAY_DECAY } from '../online/intervals/prediction-intervals.ts';
import { WINDOW } from '../online/intervals/rolling-maximum.ts';
import { CORRECTION_DECAY, MAX_CORRECTION } from '../online/intervals/server-quantiles.ts';
import type { LearningState } from '../online/live-model.ts';
import type { LiveTarget } from '../online/live-target.ts';
import { MEANS_DECAYS } from '../online/residual-tracker.ts';
import type { Target } from '../schema/observation-table.ts';

/** The means of residuals, by their owner; and the experts and quantiles of a slot and of a server in that slot. */
export const GROUP_KINDS = ['model means', 'pod type means', 'server means', 'slot', 'server'] as const;
export type GroupKind = (typeof GROUP_KINDS)[number];

/** The same in every process: numbers of servers and pod types are not. */
export interface GroupName {
  readonly kind: GroupKind;
  readonly target: Target;
  /** A pod type, for its means; the key of a slot, for what it keeps: both are names of pod types. Null where neither counts. */
  readonly slot: string | null;
  readonly server: string;
}

/** The newest residuals of a slot, oldest first: in units of the spread, as logarithms, and in milliseconds. */
export interface Residuals {
  readonly scaled: readonly number[];
  readonly logRatios: readonly number[];
  readonly excessesMs: readonly number[];
}

export interface SumGroup {
  readonly decays: readonly number[];
  /** So many of the first sums count an event by its certainty; the others count each event as one. */
  readonly weightedSumCount: number;
  readonly limits: Limits | undefined;
  read(): Float64Array;
  /** `events` were observed by other processes since the last write; a slot counts them with its residuals. */
  write(sums: Float64Array, events: number): void;
  /** Only of a slot. */
  readonly residuals: { read(): Residuals; write(residuals: Residuals, events: number): void } | undefined;
}

export interface Limits {
  readonly least: readonly number[];
  readonly most: readonly number[];
}

export function isMeans(kind: GroupKind): boolean {
  return kind !== 'slot' && kind !== 'server';
}

/** Opens the slot, and gives numbers to the pod type and the server, where they are new here. */
export function openGroup(parts: LearningState, name: GroupName): SumGroup {
  if (isMeans(name.kind)) return openMeans(parts, name);
  const key = name.slot ?? '';
  parts.ensureSlot(key);
  const live = parts.slots.get(key)![name.target];
  return name.kind === 'slot' ? openSlot(live) : openServer(live, numberOfServer(parts, name));
}

function numberOfServer({ tracker }: LearningState, { server }: GroupName): number {
  return tracker.servers.ensure(Buffer.from(server));
}

function openMeans(parts: LearningState, name: GroupName): SumGroup {
  const { tracker } = parts;
  const { kind, target } = name;
  const owner =
    kind === 'server means'
      ? ({ kind: 'server', number: numberOfServer(parts, name) } as const)
      : kind === 'pod type means'
        ? ({ kind: 'podType', number: name.slot === null ? 0 : parts.registerPodType(name.slot) } as const)
        : ({ kind: 'model', number: 0 } as const);
  return {
    decays: MEANS_DECAYS,
    weightedSumCount: MEANS_DECAYS.length,
    limits: undefined,
    residuals: undefined,
    read: () => tracker.readTarget(owner, target),
    write: (sums) => tracker.writeTarget(owner, target, sums),
  };
}

const EXPERT_COLUMNS = EXPERT_COUNT + 1;
const LEVELS = QUANTILE_LEVELS.length;

function repeat(value: number, times: number): number[] {
  return Array.from({ length: times }, () => value);
}

const EXPERT_DECAYS = repeat(LOSS_DECAY, EXPERT_COLUMNS);
const NO_LEAST = repeat(Number.NEGATIVE_INFINITY, EXPERT_COLUMNS);
const NO_MOST = repeat(Number.POSITIVE_INFINITY, EXPERT_COLUMNS);

const SERVER_DECAYS = [...EXPERT_DECAYS, ...repeat(CORRECTION_DECAY, LEVELS)];
const SERVER_LIMITS: Limits = {
  least: [...NO_LEAST, ...repeat(-MAX_CORRECTION, LEVELS)],
  most: [...NO_MOST, ...repeat(MAX_CORRECTION, LEVELS)],
};

function openServer({ weights, intervals }: LiveTarget, server: number): SumGroup {
  return {
    decays: SERVER_DECAYS,
    weightedSumCount: EXPERT_COLUMNS,
    limits: SERVER_LIMITS,
    residuals: undefined,
    read: () =>
      Float64Array.from([
        ...listExperts(weights.saveServer(server)),
        ...(intervals.ofServers.saveServer(server) ?? repeat(0, LEVELS)),
      ]),
    write(sums, events) {
      weights.restoreServer(server, toExperts(sums));
      intervals.ofServers.restoreServer(server, [...sums.subarray(EXPERT_COLUMNS)]);
      intervals.ofServers.countEvents(server, events);
    },
  };
}

/** Levels do not decay: what every process moved them by adds up. */
const SLOT_DECAYS = [...EXPERT_DECAYS, ...repeat(1, LEVELS), ...repeat(COVERAGE_DECAY, LEVELS), FEEDBACK_DELAY_DECAY];
const SLOT_LIMITS: Limits = {
  least: [...NO_LEAST, ...repeat(MIN_LEVEL, LEVELS), ...repeat(0, LEVELS), 0],
  most: [...NO_MOST, ...repeat(MAX_LEVEL, LEVELS), ...repeat(1, LEVELS), Number.POSITIVE_INFINITY],
};

function openSlot({ weights, intervals }: LiveTarget): SumGroup {
  const { ofSlot, rollingMaximum, excessMaximum } = intervals;
  const levelsEnd = EXPERT_COLUMNS + LEVELS;
  return {
    decays: SLOT_DECAYS,
    weightedSumCount: EXPERT_COLUMNS,
    limits: SLOT_LIMITS,
    read() {
      const { levels, coverages } = ofSlot.save();
      return Float64Array.from([...listExperts(weights.save()), ...levels, ...coverages, intervals.feedbackDelay]);
    },
    write(sums) {
      const levels = [...sums.subarray(EXPERT_COLUMNS, levelsEnd)];
      const coverages = [...sums.subarray(levelsEnd, levelsEnd + LEVELS)];
      intervals.feedbackDelay = sums[levelsEnd + LEVELS]!;
      ofSlot.replace({ residuals: ofSlot.save().residuals, levels, coverages }, 0);
      weights.restore(toExperts(sums));
    },
    residuals: {
      read: () => ({
        scaled: ofSlot.save().residuals,
        logRatios: rollingMaximum.list(),
        excessesMs: excessMaximum.list(),
      }),
      write({ scaled, logRatios, excessesMs }, events) {
        ofSlot.replace({ ...ofSlot.save(), residuals: scaled }, events);
        rollingMaximum.replace(logRatios);
        excessMaximum.replace(excessesMs);
      },
    },
  };
}

function listExperts(saved: SavedExperts | undefined): number[] {
  return saved === undefined ? repeat(0, EXPERT_COLUMNS) : [...saved.losses, saved.count];
}

function toExperts(sums: Float64Array): SavedExperts {
  return { losses: [...sums.subarray(0, EXPERT_COUNT)], count: sums[EXPERT_COUNT]! };
}

/** How many events there were, and the sum of their certainties. */
export interface EventCount {
  readonly events: number;
  readonly certainty: number;
}

/** What a number of events adds to a group. */
export interface AddedEvents extends EventCount {
  readonly sums: Float64Array | Float32Array;
}

/** What is left of each sum after the events, before what they add. */
export function decaySums(
  { decays, weightedSumCount }: SumGroup,
  sums: Float64Array,
  { events, certainty }: EventCount,
): Float64Array {
  return sums.map((value, c) => value * decays[c]! ** (c < weightedSumCount ? certainty : events));
}

/** The sums after events that add `added`. */
export function addEvents(group: SumGroup, before: Float64Array, added: AddedEvents): Float64Array {
  return addWithin(group, decaySums(group, before, added), added.sums);
}

/** The sums and what is added to them, within their limits. */
export function addWithin({ limits }: SumGroup, sums: Float64Array, added: AddedEvents['sums']): Float64Array {
  return sums.map((value, c) => {
    const next = value + added[c]!;
    return limits === undefined ? next : Math.max(limits.least[c]!, Math.min(limits.most[c]!, next));
  });
}

/** The newest of both together. */
export function appendResiduals(before: Residuals, added: Residuals): Residuals {
  return {
    scaled: [...before.scaled, ...added.scaled].slice(-KEPT),
    logRatios: [...before.logRatios, ...added.logRatios].slice(-WINDOW),
    excessesMs: [...before.excessesMs, ...added.excessesMs].slice(-WINDOW),
  };
}

export function newestResiduals({ scaled, logRatios, excessesMs }: Residuals, events: number): Residuals {
  if (events === 0) return { scaled: [], logRatios: [], excessesMs: [] };
  return { scaled: scaled.slice(-events), logRatios: logRatios.slice(-events), excessesMs: excessesMs.slice(-events) };
}
