/** Encodes the state that intervals depend on as numbers, and decodes it, so that an interval can be computed as of an earlier moment. */
import { NO_CORRECTIONS, QUANTILE_LEVELS } from './conformal.ts';

const LEVELS = QUANTILE_LEVELS.length;

/** The state that all intervals of a slot depend on, besides the scale that was measured in training. */
export interface SlotState {
  /** The quantiles of recent residuals, one for each of `QUANTILE_LEVELS`; undefined while residuals are few. */
  readonly recent: Float64Array | undefined;
  /** `AdaptiveQuantiles.evidence`. */
  readonly evidence: number;
  /** The corrections of the learned quantiles. */
  readonly learnedCorrections: ArrayLike<number>;
  /** The largest recent residual, and the largest recent excess in milliseconds. */
  readonly largestShift: number;
  readonly largestExcessMs: number;
  /** The feedback delay: how many times of other requests are observed between a prediction and its own time. */
  readonly delay: number;
  /** How many times the slot has observed. */
  readonly count: number;
}

/** The state that intervals of one server in a slot depend on. */
export interface ServerState {
  /** The corrections of the server, one for each of `QUANTILE_LEVELS`. */
  readonly corrections: Float64Array;
  /** How many times of this server were observed. */
  readonly count: number;
}

/** The states of an earlier moment. In place of an absent one, the present state is used. */
export interface DatedState {
  readonly slot?: SlotState | undefined;
  readonly server?: ServerState | undefined;
}

/** How many numbers `writeSlotState` and `writeServerState` return. */
export const SLOT_STATE_LENGTH = 2 * LEVELS + 5;
export const SERVER_STATE_LENGTH = LEVELS + 1;

const NONE: readonly number[] = NO_CORRECTIONS.map(() => Number.NaN);

export function writeSlotState({ recent, learnedCorrections, ...state }: SlotState): number[] {
  const { count, evidence, largestShift, largestExcessMs, delay } = state;
  return [
    count,
    evidence,
    largestShift,
    largestExcessMs,
    delay,
    ...(recent ?? NONE),
    ...Array.from(learnedCorrections),
  ];
}

export function readSlotState(numbers: Float64Array): SlotState {
  const [count = 0, evidence = 0, largestShift = 0, largestExcessMs = 0, delay = 0] = numbers;
  const recent = numbers.slice(5, 5 + LEVELS);
  return {
    recent: Number.isNaN(recent[0]) ? undefined : recent,
    learnedCorrections: numbers.slice(5 + LEVELS, 5 + 2 * LEVELS),
    count,
    evidence,
    largestShift,
    largestExcessMs,
    delay,
  };
}

export function writeServerState({ corrections, count }: ServerState): number[] {
  return [count, ...corrections];
}

export function readServerState(numbers: Float64Array): ServerState {
  return { count: numbers[0]!, corrections: numbers.slice(1, 1 + LEVELS) };
}
