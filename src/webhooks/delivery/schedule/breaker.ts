/**
 * Implements the circuit breaker that pauses a failing hook or origin, by its share of failures, or at once after a 429 with
 * `Retry-After`. After any other failure `Retry-After` counts if that failure opens the breaker. `Retry-After` is honoured up to 5
 * minutes. Hooks and origins use the same state machine; `attempt-outcome.ts` decides what is a success and a failure for each.
 * Pure: reads no clock and does no I/O.
 *
 * A breaker judges a share of failures, not failures in a row: at 150 deliveries a second, a receiver with one bad server of five
 * fails five times in a row about twice a minute, and is not down. For the same reason one failure on the ramp does not open the
 * breaker again. `docs/how-it-works/delivery.md` has the table of `TRANSITIONS` with its reasons.
 */
export interface BreakerRules {
  /** After the probe 1, 2, 4 … attempts are allowed at once, up to this many; when the last step is accepted, the breaker closes. */
  readonly maxRamp: number;
}

/** At most four deliveries of a hook are under way, so a longer ramp would have no effect. */
export const HOOK_RULES: BreakerRules = { maxRamp: 4 };
export const ORIGIN_RULES: BreakerRules = { maxRamp: 8 };

/** How many of the last attempts are judged. */
const WINDOW = 20;
const WINDOW_BITS = 2 ** WINDOW - 1;
/**
 * Fewer failures do not open a breaker that is closed or ramping. A failed probe opens it again, and a 429 with `Retry-After` opens it
 * in any state.
 */
export const MIN_FAILURES = 5;
/**
 * The share of failures that opens a breaker: 18 of 20 once the window is full. A receiver that refuses half of its requests at random
 * reaches that once in 5,000 attempts, and one that refuses fewer almost never. While the window has fewer attempts, the share is the
 * same, and at least `MIN_FAILURES` are needed.
 */
const OPEN_SHARE = 0.9;
const FIRST_PAUSE_MS = 5000;
export const MAX_PAUSE_MS = 300_000;
/** The longest pause, including the random spread of pauses and the delay of the next probe of an origin. */
export const LONGEST_PAUSE_MS = 1.5 * MAX_PAUSE_MS;

export type BreakerState = 'closed' | 'open' | 'probing' | 'ramping';

export interface Breaker {
  readonly state: BreakerState;
  /** The window of the last attempts, the newest in the lowest bit; 1 is a failure. A window without failures counts as empty. */
  readonly failureBits: number;
  readonly attempts: number;
  /** How often the breaker opened because of failures since it was last closed; the pause doubles each time. */
  readonly openings: number;
  /** When the breaker first opened since it was last closed. */
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Whether `Retry-After` determines the pause. */
  readonly isFromRetryAfter: boolean;
  /** On the ramp: how many attempts may be under way, and how many have succeeded on this step (`successes`). */
  readonly ramp: number;
  readonly successes: number;
}

export const CLOSED_BREAKER: Breaker = {
  state: 'closed',
  failureBits: 0,
  attempts: 0,
  openings: 0,
  sinceMs: 0,
  untilMs: 0,
  isFromRetryAfter: false,
  ramp: Number.POSITIVE_INFINITY,
  successes: 0,
};

export type BreakerEvent =
  /** An attempt begins. */
  | { readonly kind: 'begin' }
  /** A person ends the pause. */
  | { readonly kind: 'end_pause' }
  | { readonly kind: 'success' }
  /** `retryAfterMs` counts only if this failure opens the breaker. */
  | { readonly kind: 'failure'; readonly retryAfterMs?: number | undefined }
  /** 429 with `Retry-After`. */
  | { readonly kind: 'rate_limited'; readonly retryAfterMs: number };

export interface BreakerMoment {
  readonly nowMs: number;
  /** Uniform in [0, 1): spreads the ends of pauses that began together. */
  readonly random: number;
}

interface Context extends BreakerMoment {
  readonly rules: BreakerRules;
  readonly retryAfterMs: number;
}

type Transition = (breaker: Breaker, context: Context) => Breaker;

const stay: Transition = (breaker) => breaker;

export const TRANSITIONS: Readonly<Record<BreakerState, Readonly<Record<BreakerEvent['kind'], Transition>>>> = {
  closed: {
    begin: stay,
    end_pause: stay,
    success: (breaker) => shiftIn(breaker, 0),
    failure: openWhenMostFail,
    rate_limited: openForRateLimit,
  },
  open: {
    // The first attempt after the pause is the probe.
    begin: (breaker, { nowMs }) => (isPauseOver(breaker, nowMs) ? { ...breaker, state: 'probing' } : breaker),
    end_pause: endPause,
    // An attempt that began before the breaker opened says nothing about the present state.
    success: stay,
    failure: stay,
    rate_limited: (breaker, context) => {
      const untilMs = context.nowMs + retryAfterPauseMs(context);
      return untilMs > breaker.untilMs ? { ...breaker, untilMs, isFromRetryAfter: true } : breaker;
    },
  },
  probing: {
    begin: stay,
    end_pause: stay,
    success: (breaker) => ({ ...CLOSED_BREAKER, ...keepHistory(breaker), state: 'ramping', ramp: 1 }),
    failure: openForLonger,
    rate_limited: openForLonger,
  },
  ramping: {
    begin: stay,
    end_pause: stay,
    success: stepUpRamp,
    failure: openWhenMostFail,
    rate_limited: openForRateLimit,
  },
};

export function advanceBreaker(
  breaker: Breaker,
  event: BreakerEvent,
  moment: BreakerMoment & { readonly rules: BreakerRules },
): Breaker {
  const retryAfterMs = 'retryAfterMs' in event ? (event.retryAfterMs ?? 0) : 0;
  return TRANSITIONS[breaker.state][event.kind](breaker, { ...moment, retryAfterMs });
}

/** How many attempts may be under way now. */
export function allowedAttempts(breaker: Breaker, nowMs: number): number {
  if (breaker.state === 'open') return isPauseOver(breaker, nowMs) ? 1 : 0;
  return breaker.state === 'probing' ? 1 : breaker.ramp;
}

/** Whether the pause is over. A pause longer than the longest possible one began while the clock was ahead, and counts as over. */
export function isPauseOver({ untilMs }: Pick<Breaker, 'untilMs'>, nowMs: number): boolean {
  return untilMs <= nowMs || untilMs > nowMs + LONGEST_PAUSE_MS;
}

/** Doubles with every opening, and is spread by ± 20 %, so that hooks that failed together do not come back together. */
export function pauseMs(openings: number, random: number): number {
  const doublings = Math.min(30, Math.max(0, openings - 1));
  return Math.round(Math.min(FIRST_PAUSE_MS * 2 ** doublings, MAX_PAUSE_MS) * (0.8 + 0.4 * random));
}

/** The breaker of a hook, as its row in `endpoint_queue` has it. */
export interface StoredBreaker {
  /** Whether it is paused after failures or because of `Retry-After`. */
  readonly isPaused: boolean;
  /** Failed attempts since the last that was accepted. */
  readonly fails: number;
  readonly openings: number;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * Restores the breaker after a start. The window is not stored: a hook that failed often begins open, so that a probe comes first; any
 * other begins closed, with its stored failures in the window.
 */
export function restoreBreaker({ isPaused, fails, openings, sinceMs, untilMs }: StoredBreaker): Breaker {
  const attempts = Math.min(fails, MIN_FAILURES - 1);
  const closed = { ...CLOSED_BREAKER, attempts, failureBits: 2 ** attempts - 1 };
  if (isPaused || fails >= MIN_FAILURES) return { ...closed, state: 'open', openings, sinceMs, untilMs };
  return fails === 0 ? CLOSED_BREAKER : closed;
}

/** Adds the result of an attempt to the window of the latest ones. */
function shiftIn(breaker: Breaker, failure: 0 | 1): Breaker {
  const failureBits = ((breaker.failureBits << 1) | failure) & WINDOW_BITS;
  if (failureBits === 0 && breaker.state === 'closed') return CLOSED_BREAKER;
  const attempts = failureBits === 0 ? 0 : Math.min(WINDOW, breaker.attempts + 1);
  return { ...breaker, failureBits, attempts };
}

function openWhenMostFail(breaker: Breaker, context: Context): Breaker {
  const shifted = shiftIn(breaker, 1);
  const failures = countBits(shifted.failureBits);
  if (failures < MIN_FAILURES || failures < OPEN_SHARE * shifted.attempts) return shifted;
  return openForLonger(shifted, context);
}

function openForLonger(breaker: Breaker, context: Context): Breaker {
  const openings = breaker.openings + 1;
  const plannedMs = pauseMs(openings, context.random);
  const leastMs = retryAfterPauseMs(context);
  return open(breaker, context, {
    openings,
    forMs: Math.max(plannedMs, leastMs),
    isFromRetryAfter: leastMs > plannedMs,
  });
}

/** Makes the next attempt the probe. The opening does not count, so that no caller lengthens the pauses of others with many requests. */
function endPause(breaker: Breaker, { nowMs }: Context): Breaker {
  if (isPauseOver(breaker, nowMs)) return breaker;
  return { ...breaker, untilMs: nowMs, openings: Math.max(0, breaker.openings - 1) };
}

/** A receiver that limits rates is up, so its `Retry-After` does not double the pause. */
function openForRateLimit(breaker: Breaker, context: Context): Breaker {
  return open(breaker, context, {
    openings: breaker.openings,
    forMs: retryAfterPauseMs(context),
    isFromRetryAfter: true,
  });
}

interface Opening extends Pick<Breaker, 'openings' | 'isFromRetryAfter'> {
  readonly forMs: number;
}

function open(breaker: Breaker, { nowMs }: Context, { forMs, ...opening }: Opening): Breaker {
  const sinceMs = breaker.state === 'closed' ? nowMs : breaker.sinceMs;
  return { ...CLOSED_BREAKER, state: 'open', sinceMs, untilMs: nowMs + forMs, ...opening };
}

/** `Retry-After`, at most 5 minutes, plus up to 20 %; never shorter, since a receiver that limits rates would refuse again. */
function retryAfterPauseMs({ retryAfterMs, random }: Context): number {
  return Math.round(Math.min(retryAfterMs, MAX_PAUSE_MS) * (1 + 0.2 * random));
}

function stepUpRamp(breaker: Breaker, { rules }: Context): Breaker {
  const shifted = shiftIn(breaker, 0);
  const successes = breaker.successes + 1;
  if (successes < breaker.ramp) return { ...shifted, successes };
  if (breaker.ramp < rules.maxRamp) return { ...shifted, ramp: breaker.ramp * 2, successes: 0 };
  const { failureBits, attempts } = shifted;
  return failureBits === 0 ? CLOSED_BREAKER : { ...CLOSED_BREAKER, failureBits, attempts };
}

function keepHistory({ openings, sinceMs }: Breaker): Pick<Breaker, 'openings' | 'sinceMs'> {
  return { openings, sinceMs };
}

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}
