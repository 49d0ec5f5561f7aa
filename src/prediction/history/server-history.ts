/**
 * Tracks the recent history of one server: its last first token, the gaps between first tokens, and waiting requests. Each event
 * updates a few numbers. Each of them counts as missing beyond an age, so that lost or late reports do not look like an idle or a
 * stalled server. The recent values are kept too, since a dispatch that is reported late is learned with the values at its time.
 * A clock that is set back clears the history.
 */
import { HISTORY_COLUMNS } from '../schema/columns.ts';

export interface ServerHistory {
  /** Must be called with the time at which events become known, before these are added. */
  begin(knownMs: number): void;
  dispatch(request: string, at: { readonly atMs: number; readonly tokens: number }): void;
  firstToken(request: string, atMs: number): void;
  /** The request ended, whether its first token was reported or not. */
  end(request: string): void;
  /** Fills the present values, in the order of `HISTORY_COLUMNS`; NaN is missing. */
  read(nowMs: number, into: Float64Array): void;
  /** Fills the values as they were known at an earlier time; all are missing if that time is no longer kept. */
  readAsOf(thenMs: number, into: Float64Array): void;
}

/** Older events say nothing about the present load. */
const MAX_AGE_MS = 60_000;
/** The report of a request that waits for longer was most likely lost. */
const MAX_WAIT_MS = 120_000;
/** Servers begin requests in the order they come: when this many later requests had their first token before one, its report was lost. */
const MAX_OVERTAKEN = 16;
/** First tokens that are closer than this came from one step of the server. */
const MIN_GAP_MS = 3;
/** A longer gap is a pause of the callers. */
const MAX_GAP_MS = 10_000;
/** The weight of the last gap in the decayed mean of gaps. */
const GAP_WEIGHT = 0.2;
const MAX_WAITING = 4096;
/**
 * A clock that goes back by more than this was set back. The clock of the store may change by 2.5 s by itself
 * (`database/postgres/server-clock.ts`).
 */
const STEP_MS = 3000;

export const HISTORY_SIZE = HISTORY_COLUMNS.length;

interface WaitingRequest {
  readonly atMs: number;
  readonly tokens: number;
  overtaken: number;
}

/** The history of a server at one time; NaN is the time of an event that has not happened. */
interface Known {
  /** It was known from this time on. */
  sinceMs: number;
  firstTokenMs: number;
  gapMs: number;
  waiting: number;
  waitingTokens: number;
  oldestMs: number;
  dispatchMs: number;
  earlierDispatchMs: number;
}

function createKnown(): Known {
  return {
    sinceMs: Number.NEGATIVE_INFINITY,
    firstTokenMs: Number.NaN,
    gapMs: Number.NaN,
    waiting: 0,
    waitingTokens: 0,
    oldestMs: Number.NaN,
    dispatchMs: Number.NaN,
    earlierDispatchMs: Number.NaN,
  };
}

export function createServerHistory(): ServerHistory {
  const past = createPast();
  const now = createKnown();
  const waiting = createWaitingRequests(now);

  /** Clears the history if the clock was set back: times of a clock that was ahead would look recent until the clock reaches them. */
  function forgetIfSetBack(nowMs: number): void {
    if (nowMs >= now.sinceMs - STEP_MS) return;
    past.clear();
    waiting.clear();
    Object.assign(now, createKnown());
  }

  return {
    begin(knownMs) {
      forgetIfSetBack(knownMs);
      if (knownMs <= now.sinceMs) return;
      past.keep(now, knownMs);
      now.sinceMs = knownMs;
    },
    dispatch(request, sent) {
      waiting.add(request, sent);
      recordDispatch(now, sent.atMs);
    },
    firstToken(request, atMs) {
      waiting.endWait(request);
      recordFirstToken(now, atMs);
    },
    end: waiting.drop,
    read(nowMs, into) {
      forgetIfSetBack(nowMs);
      if (nowMs - now.oldestMs > MAX_WAIT_MS) waiting.dropLost(nowMs);
      describe(now, nowMs, into);
    },
    readAsOf(thenMs, into) {
      if (thenMs >= now.sinceMs) this.read(thenMs, into);
      else past.describe(thenMs, into);
    },
  };
}

/** The requests that wait for their first token, in the order of their dispatches. Keeps their totals in `now`. */
function createWaitingRequests(now: Known) {
  const waiting = new Map<string, WaitingRequest>();

  function drop(request: string): void {
    const known = waiting.get(request);
    if (known === undefined) return;
    waiting.delete(request);
    now.waiting = waiting.size;
    now.waitingTokens = waiting.size === 0 ? 0 : now.waitingTokens - known.tokens;
    if (known.atMs === now.oldestMs) now.oldestMs = waiting.values().next().value?.atMs ?? Number.NaN;
  }

  /** Counts the requests before this one that it has overtaken. */
  function overtake(request: string): void {
    let looked = 0;
    for (const [earlier, known] of waiting) {
      if (earlier === request || ++looked > MAX_OVERTAKEN) return;
      if (++known.overtaken >= MAX_OVERTAKEN) drop(earlier);
    }
  }

  return {
    drop,
    clear: () => waiting.clear(),
    add(request: string, { atMs, tokens }: Pick<WaitingRequest, 'atMs' | 'tokens'>): void {
      drop(request);
      if (waiting.size >= MAX_WAITING) drop(waiting.keys().next().value!);
      if (waiting.size === 0) now.oldestMs = atMs;
      waiting.set(request, { atMs, tokens, overtaken: 0 });
      now.waiting = waiting.size;
      now.waitingTokens += tokens;
    },
    /** The request has its first token. */
    endWait(request: string): void {
      if (waiting.has(request)) overtake(request);
      drop(request);
    },
    dropLost(nowMs: number): void {
      for (const [request, { atMs }] of waiting) {
        if (nowMs - atMs <= MAX_WAIT_MS) return;
        drop(request);
      }
    },
  };
}

function recordDispatch(known: Known, atMs: number): void {
  if (!(known.dispatchMs > atMs)) {
    known.earlierDispatchMs = known.dispatchMs;
    known.dispatchMs = atMs;
  } else if (!(known.earlierDispatchMs > atMs)) known.earlierDispatchMs = atMs;
}

function recordFirstToken(known: Known, atMs: number): void {
  const sinceMs = atMs - known.firstTokenMs;
  if (sinceMs < 0) return;
  known.firstTokenMs = atMs;
  if (!(sinceMs >= MIN_GAP_MS && sinceMs <= MAX_GAP_MS)) return;
  known.gapMs = Number.isNaN(known.gapMs) ? sinceMs : known.gapMs + GAP_WEIGHT * (sinceMs - known.gapMs);
}

/** Writes the history in the order of `HISTORY_COLUMNS`. */
function describe(known: Known, nowMs: number, into: Float64Array): void {
  const sinceFirstTokenMs = nowMs - known.firstTokenMs;
  const isPaced = sinceFirstTokenMs <= MAX_AGE_MS;
  const isHeardOf = nowMs - known.dispatchMs <= MAX_AGE_MS || known.waiting > 0;
  into[0] = isPaced ? Math.max(0, sinceFirstTokenMs) : Number.NaN;
  into[1] = isPaced ? known.gapMs : Number.NaN;
  into[2] = isHeardOf ? known.waitingTokens : Number.NaN;
  into[3] = isHeardOf ? (known.waiting > 0 ? Math.max(0, nowMs - known.oldestMs) : 0) : Number.NaN;
  into[4] = isPaced && isHeardOf ? known.gapMs * known.waiting : Number.NaN;
  into[5] = limitAge(nowMs - known.dispatchMs);
  into[6] = limitAge(nowMs - known.earlierDispatchMs);
}

function limitAge(ageMs: number): number {
  return ageMs <= MAX_AGE_MS ? Math.max(0, ageMs) : Number.NaN;
}

/** How many earlier moments are remembered, and how far apart they are at least. */
const KEPT_MOMENTS = 16;
const MOMENT_MS = 10;

/** Keeps the newest moments at which the known values changed. */
function createPast() {
  const moments: Known[] = [];
  let count = 0;

  return {
    /** `known` was all that was known until `untilMs`. */
    keep(known: Known, untilMs: number): void {
      const last = moments[(count - 1) % KEPT_MOMENTS];
      // A moment that soon changes again is left out: the one before it is used for both, as if reports had come a little later.
      if (last !== undefined && untilMs - last.sinceMs < MOMENT_MS) return;
      const moment = moments[count % KEPT_MOMENTS];
      if (moment === undefined) moments[count % KEPT_MOMENTS] = { ...known };
      else Object.assign(moment, known);
      count++;
    },
    clear(): void {
      count = 0;
    },
    describe(thenMs: number, into: Float64Array): void {
      for (let back = 1; back <= Math.min(count, KEPT_MOMENTS); back++) {
        const moment = moments[(count - back) % KEPT_MOMENTS]!;
        if (moment.sinceMs > thenMs) continue;
        describe(moment, thenMs, into);
        return;
      }
      into.fill(Number.NaN, 0, HISTORY_SIZE);
    },
  };
}
