/**
 * Lists what a live model has learned from reports, as groups of decayed sums. An event changes a sum to `decay * sum +
 * addition`. So n events of a process change it to `decay ** n * sum + b`, and b does not depend on the sum they began with:
 * other processes need n and b only. Means and losses count an event by its certainty, so their exponent is the sum of
 * certainties. Besides the sums, a slot keeps the newest residuals.
 */
import { KEPT_RESIDUALS, NO_CORRECTIONS } from '../online/intervals/conformal.ts';
import { MAXIMUM_WINDOW } from '../online/intervals/rolling-maximum.ts';
import type { LearningState } from '../online/live-model.ts';
import { MEANS_DECAYS } from '../online/residual-tracker.ts';
import type { TargetPredictor } from '../online/target-predictor.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import {
  CERTAINTY_SUMS,
  joinExperts,
  type Limits,
  readExperts,
  readQuantiles,
  SERVER_SUMS,
  SLOT_SUMS,
} from './sum-layout.ts';

/**
 * Three kinds are means of residuals, one for each kind of owner. `slot` and `server` are expert losses and quantiles, of a slot
 * and of a server in it.
 */
export const GROUP_KINDS = ['model means', 'pod type means', 'server means', 'slot', 'server'] as const;
export type GroupKind = (typeof GROUP_KINDS)[number];

/** Texts, not numbers: each process numbers servers and pod types in its own way. */
export interface GroupName {
  readonly kind: GroupKind;
  readonly target: PredictionTarget;
  /** The pod type, for `pod type means`; the key of the slot, for `slot` and `server`; else null. */
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
  /** How many of the first sums count an event by its certainty; the others count each event as one. */
  readonly weightedSumCount: number;
  readonly limits: Limits | undefined;
  read(): Float64Array;
  /** `events` is how many events other processes added. A slot counts them when its residuals are written. */
  write(sums: Float64Array, events: number): void;
  /** Only a slot has residuals. */
  readonly residuals: { read(): Residuals; write(residuals: Residuals, events: number): void } | undefined;
}

export function isMeans(kind: GroupKind): boolean {
  return kind !== 'slot' && kind !== 'server';
}

/** Finds the sums in the live model. A slot, pod type or server that this process did not know is added to it. */
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

function openServer({ weights, intervals }: TargetPredictor, server: number): SumGroup {
  return {
    decays: SERVER_SUMS.decays,
    weightedSumCount: CERTAINTY_SUMS,
    limits: SERVER_SUMS.limits,
    residuals: undefined,
    read: () =>
      SERVER_SUMS.join({
        ...joinExperts(weights.saveServer(server)),
        corrections: intervals.ofServers.saveServer(server) ?? NO_CORRECTIONS,
      }),
    write(sums, events) {
      weights.restoreServer(server, readExperts(SERVER_SUMS, sums));
      intervals.ofServers.restoreServer(server, SERVER_SUMS.read(sums, 'corrections'));
      intervals.ofServers.countEvents(server, events);
    },
  };
}

function openSlot({ weights, intervals }: TargetPredictor): SumGroup {
  const { ofSlot, ofLearned, rollingMaximum, excessMaximum } = intervals;
  return {
    decays: SLOT_SUMS.decays,
    weightedSumCount: CERTAINTY_SUMS,
    limits: SLOT_SUMS.limits,
    read() {
      const { levels, coverages, corrections = NO_CORRECTIONS } = ofSlot.save();
      const delays = { feedbackDelay: [intervals.delays.feedbackDelay], reportDelay: [intervals.delays.reportDelay] };
      const learnedCorrections = ofLearned.save();
      const quantiles = { levels, coverages, corrections, learnedCorrections };
      return SLOT_SUMS.join({ ...joinExperts(weights.save()), ...quantiles, ...delays });
    },
    write(sums) {
      intervals.delays.feedbackDelay = SLOT_SUMS.read(sums, 'feedbackDelay')[0]!;
      intervals.delays.reportDelay = SLOT_SUMS.read(sums, 'reportDelay')[0]!;
      const { residuals } = ofSlot.save();
      ofSlot.replace({ residuals, ...readQuantiles(sums) }, 0);
      ofLearned.restore(SLOT_SUMS.read(sums, 'learnedCorrections'));
      weights.restore(readExperts(SLOT_SUMS, sums));
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

/** How many events there were, and the sum of their certainties. */
export interface EventCount {
  readonly events: number;
  readonly certainty: number;
}

/** The amounts that a number of events adds to a group: the b of each sum. */
export interface AddedEvents extends EventCount {
  readonly sums: Float64Array | Float32Array;
}

/** Returns the sums decayed by the events, without the amounts that the events add. */
export function decaySums(
  { decays, weightedSumCount }: SumGroup,
  sums: Float64Array,
  { events, certainty }: EventCount,
): Float64Array {
  return sums.map((value, c) => value * decays[c]! ** (c < weightedSumCount ? certainty : events));
}

/** Returns the sums after events that add `added`. */
export function addEvents(group: SumGroup, before: Float64Array, added: AddedEvents): Float64Array {
  return addWithin(group, decaySums(group, before, added), added.sums);
}

/** Adds two vectors, and clamps the result to the limits of the group. */
export function addWithin({ limits }: SumGroup, sums: Float64Array, added: AddedEvents['sums']): Float64Array {
  return sums.map((value, c) => {
    // The row of an older release may lack the last sums.
    const next = value + (added[c] ?? 0);
    return limits === undefined ? next : Math.max(limits.least[c]!, Math.min(limits.most[c]!, next));
  });
}

/** The newest residuals of both lists together, as many as a slot keeps. */
export function appendResiduals(before: Residuals, added: Residuals): Residuals {
  return {
    scaled: [...before.scaled, ...added.scaled].slice(-KEPT_RESIDUALS),
    logRatios: [...before.logRatios, ...added.logRatios].slice(-MAXIMUM_WINDOW),
    excessesMs: [...before.excessesMs, ...added.excessesMs].slice(-MAXIMUM_WINDOW),
  };
}

export function newestResiduals({ scaled, logRatios, excessesMs }: Residuals, events: number): Residuals {
  if (events === 0) return { scaled: [], logRatios: [], excessesMs: [] };
  return { scaled: scaled.slice(-events), logRatios: logRatios.slice(-events), excessesMs: excessesMs.slice(-events) };
}
