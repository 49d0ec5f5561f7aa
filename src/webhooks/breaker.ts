/**
 * Keeps us from beating on what is down: after some failures in a row nothing is sent, then one probe, and after the
 * first success 1, 2, 4, 8 at a time. While it is open no attempt is made, so none is used up. Values only.
 */
export interface BreakerRules {
  /** Failures in a row that open it. */
  readonly threshold: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

export const ORIGIN_BREAKER: BreakerRules = { threshold: 5, firstPauseMs: 5000, maxPauseMs: 300_000 };
/** One path of a server that otherwise works: more patience, since its deliveries have their own schedule. */
export const ENDPOINT_BREAKER: BreakerRules = { threshold: 10, firstPauseMs: 5000, maxPauseMs: 300_000 };

export interface Breaker {
  readonly state: 'closed' | 'open' | 'probing';
  /** Failures since the last success. */
  readonly failures: number;
  /** When it is open: until when. */
  readonly untilMs: number;
  /** How many may be under way at once after a recovery; infinite when there was none. */
  readonly ramp: number;
  /** Successes on this step of the ramp. */
  readonly successes: number;
}

export const CLOSED_BREAKER: Breaker = {
  state: 'closed',
  failures: 0,
  untilMs: 0,
  ramp: Number.POSITIVE_INFINITY,
  successes: 0,
};

const RAMP_TOP = 8;

/** How many attempts may be under way now. */
export function allowedAttempts(breaker: Breaker, nowMs: number): number {
  if (breaker.state === 'closed') return breaker.ramp;
  if (breaker.state === 'probing') return 1;
  return breaker.untilMs <= nowMs ? 1 : 0;
}

/** To be called when an attempt begins: the one that begins after a pause is the probe. */
export function beginAttempt(breaker: Breaker, nowMs: number): Breaker {
  return breaker.state === 'open' && breaker.untilMs <= nowMs ? { ...breaker, state: 'probing' } : breaker;
}

/** An answer came. What was still under way when it opened says nothing about now, so only the probe closes it. */
export function recordSuccess(breaker: Breaker): Breaker {
  if (breaker.state === 'open') return breaker;
  if (breaker.state === 'probing') return { ...CLOSED_BREAKER, ramp: 1 };
  if (breaker.ramp === Number.POSITIVE_INFINITY) return breaker.failures === 0 ? breaker : CLOSED_BREAKER;
  const successes = breaker.successes + 1;
  if (successes < breaker.ramp) return { ...breaker, failures: 0, successes };
  return breaker.ramp >= RAMP_TOP ? CLOSED_BREAKER : { ...CLOSED_BREAKER, ramp: breaker.ramp * 2 };
}

export interface FailureMoment {
  readonly nowMs: number;
  readonly random: number;
}

/** A failure came. It opens when there were enough, on a failed probe, and at the first failure of a ramp. */
export function recordFailure(breaker: Breaker, rules: BreakerRules, { nowMs, random }: FailureMoment): Breaker {
  if (breaker.state === 'open') return breaker;
  const failures = breaker.failures + 1;
  const isRamping = breaker.ramp !== Number.POSITIVE_INFINITY;
  if (breaker.state === 'closed' && failures < rules.threshold && !isRamping) return { ...breaker, failures };
  const opened = { ...CLOSED_BREAKER, state: 'open' as const, failures: Math.max(failures, rules.threshold) };
  return { ...opened, untilMs: nowMs + pauseMs(opened.failures, rules, random) };
}

/** Doubles with every failure beyond the threshold; spread by a fifth, so that what failed together comes back apart. */
export function pauseMs(failures: number, rules: BreakerRules, random: number): number {
  const doublings = Math.min(30, Math.max(0, failures - rules.threshold));
  const plannedMs = Math.min(rules.firstPauseMs * 2 ** doublings, rules.maxPauseMs);
  return Math.round(plannedMs * (0.8 + 0.4 * random));
}

/** The breaker of an endpoint as its row tells: how often it failed in a row and when it is due. */
export function restoreBreaker(failures: number, untilMs: number, rules: BreakerRules): Breaker {
  if (failures < rules.threshold) return { ...CLOSED_BREAKER, failures };
  return { ...CLOSED_BREAKER, state: 'open', failures, untilMs };
}
