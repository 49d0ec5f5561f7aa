/**
 * Defines the order, decay and limits of the sums in a group. Saved states and rows of the log have the same order.
 * `online/residual-tracker.ts` has the order of the means of residuals.
 */
import { LOSS_DECAY, type SavedExperts } from '../online/expert-weights.ts';
import { EXPERT_COUNT, EXPERTS } from '../online/experts.ts';
import {
  COVERAGE_DECAY,
  MAX_LEVEL,
  MAX_SLOT_CORRECTION,
  MIN_LEVEL,
  QUANTILE_LEVELS,
} from '../online/intervals/conformal.ts';
import { MAX_LEARNED_CORRECTION } from '../online/intervals/learned-corrections.ts';
import { FEEDBACK_DELAY_DECAY } from '../online/intervals/prediction-intervals.ts';
import { CORRECTION_DECAY, MAX_CORRECTION } from '../online/intervals/server-quantiles.ts';

/** Adjacent sums of one kind. */
interface Part {
  readonly count: number;
  readonly decay: number;
  /** No limit when absent. */
  readonly least?: number;
  readonly most?: number;
}

export interface Limits {
  readonly least: readonly number[];
  readonly most: readonly number[];
}

export interface SumLayout<Name extends string> {
  readonly decays: readonly number[];
  readonly limits: Limits;
  /** The sums of one part of the vector. */
  read(sums: ArrayLike<number>, name: Name): number[];
  /** Joins the parts to the vector of all sums. */
  join(parts: Readonly<Record<Name, readonly number[]>>): Float64Array;
}

function createLayout<Name extends string>(parts: Readonly<Record<Name, Part>>): SumLayout<Name> {
  const names = Object.keys(parts) as Name[];
  const listEach = (value: (part: Part) => number): number[] =>
    names.flatMap((name) => Array.from({ length: parts[name].count }, () => value(parts[name])));
  const starts = new Map<Name, number>();
  let end = 0;
  for (const name of names) {
    starts.set(name, end);
    end += parts[name].count;
  }
  return {
    decays: listEach(({ decay }) => decay),
    limits: {
      least: listEach(({ least = Number.NEGATIVE_INFINITY }) => least),
      most: listEach(({ most = Number.POSITIVE_INFINITY }) => most),
    },
    read: (sums, name) => Array.from({ length: parts[name].count }, (_, i) => sums[starts.get(name)! + i]!),
    join: (values) => Float64Array.from(names.flatMap((name) => values[name])),
  };
}

const LEVELS = QUANTILE_LEVELS.length;

/** The decayed losses of the experts, and the decayed number of their events. */
const EXPERT_PARTS = {
  losses: { count: EXPERT_COUNT, decay: LOSS_DECAY },
  lossCount: { count: 1, decay: LOSS_DECAY },
} as const;

/** How many of the first sums count an event by its certainty; the others count each event as one. */
export const CERTAINTY_SUMS: number = EXPERT_PARTS.losses.count + EXPERT_PARTS.lossCount.count;

export const SERVER_SUMS: SumLayout<'losses' | 'lossCount' | 'corrections'> = createLayout({
  ...EXPERT_PARTS,
  corrections: { count: LEVELS, decay: CORRECTION_DECAY, least: -MAX_CORRECTION, most: MAX_CORRECTION },
});

type SlotPart =
  | 'losses'
  | 'lossCount'
  | 'levels'
  | 'coverages'
  | 'feedbackDelay'
  | 'corrections'
  | 'reportDelay'
  | 'learnedCorrections';

/** New parts go to the end: older releases read and write the vector without them. */
export const SLOT_SUMS: SumLayout<SlotPart> = createLayout({
  ...EXPERT_PARTS,
  /** Levels do not decay: the steps by which all processes moved them add up. */
  levels: { count: LEVELS, decay: 1, least: MIN_LEVEL, most: MAX_LEVEL },
  coverages: { count: LEVELS, decay: COVERAGE_DECAY, least: 0, most: 1 },
  feedbackDelay: { count: 1, decay: FEEDBACK_DELAY_DECAY, least: 0 },
  corrections: { count: LEVELS, decay: 1, least: -MAX_SLOT_CORRECTION, most: MAX_SLOT_CORRECTION },
  reportDelay: { count: 1, decay: FEEDBACK_DELAY_DECAY, least: 0 },
  learnedCorrections: { count: LEVELS, decay: 1, least: -MAX_LEARNED_CORRECTION, most: MAX_LEARNED_CORRECTION },
});

type ExpertSums = SumLayout<'losses' | 'lossCount'>;

export function readExperts(layout: Pick<ExpertSums, 'read'>, sums: ArrayLike<number>): SavedExperts {
  return { losses: layout.read(sums, 'losses'), count: layout.read(sums, 'lossCount')[0]! };
}

export function joinExperts(saved: SavedExperts | undefined) {
  return { losses: saved?.losses ?? EXPERTS.map(() => 0), lossCount: [saved?.count ?? 0] };
}

/** Reads the state of the quantiles from the sums of a slot. */
export function readQuantiles(sums: ArrayLike<number>) {
  return {
    levels: SLOT_SUMS.read(sums, 'levels'),
    coverages: SLOT_SUMS.read(sums, 'coverages'),
    corrections: SLOT_SUMS.read(sums, 'corrections'),
  };
}
