/**
 * What the events of one server say of its past: when it last gave a first token, how far apart these come, and what
 * waits. A few numbers, moved by each event; every one counts as missing beyond an age, so that lost or late reports
 * do not look like an idle or a stalled server.
 */
import { HISTORY_COLUMNS } from '../schema/columns.ts';

export interface ServerHistory {
  dispatch(request: string, at: { readonly atMs: number; readonly tokens: number }): void;
  firstToken(request: string, atMs: number): void;
  /** The request ended, whether its first token was heard of or not. */
  end(request: string): void;
  /** Fills what is known at this moment, in the order of `HISTORY_COLUMNS`; NaN is missing. */
  read(nowMs: number, into: Float64Array): void;
}

/** Events that are longer ago say nothing of now. */
export const MAX_AGE_MS = 60_000;
/** A request that waits for longer has most likely lost its report. */
const MAX_WAIT_MS = 120_000;
/** Servers begin requests in the order they come: of one that so many later ones have overtaken, a report was lost. */
const MAX_OVERTAKEN = 16;
/** First tokens that are closer came from one step of the server. */
const MIN_GAP_MS = 3;
/** A longer gap is a pause of the callers. */
const MAX_GAP_MS = 10_000;
/** How much the last gap counts in their mean. */
const GAP_WEIGHT = 0.2;
const MAX_WAITING = 4096;

interface WaitingRequest {
  readonly atMs: number;
  readonly tokens: number;
  overtaken: number;
}

export const HISTORY_SIZE = HISTORY_COLUMNS.length;

export function createServerHistory(): ServerHistory {
  const waiting = new Map<string, WaitingRequest>();
  let waitingTokens = 0;
  let firstTokenMs = Number.NaN;
  let gapMs = Number.NaN;
  let dispatchMs = Number.NaN;
  let earlierDispatchMs = Number.NaN;

  function drop(request: string): void {
    const known = waiting.get(request);
    if (known === undefined) return;
    waiting.delete(request);
    waitingTokens = waiting.size === 0 ? 0 : waitingTokens - known.tokens;
  }

  /** Counts the requests before this one that it has overtaken. */
  function overtake(request: string): void {
    let looked = 0;
    for (const [earlier, known] of waiting) {
      if (earlier === request || ++looked > MAX_OVERTAKEN) return;
      if (++known.overtaken >= MAX_OVERTAKEN) drop(earlier);
    }
  }

  function noteFirstToken(atMs: number): void {
    const sinceMs = atMs - firstTokenMs;
    if (sinceMs < 0) return;
    firstTokenMs = atMs;
    if (Number.isNaN(sinceMs)) return;
    if (sinceMs < MIN_GAP_MS || sinceMs > MAX_GAP_MS) return;
    gapMs = Number.isNaN(gapMs) ? sinceMs : gapMs + GAP_WEIGHT * (sinceMs - gapMs);
  }

  return {
    dispatch(request, { atMs, tokens }) {
      drop(request);
      if (waiting.size >= MAX_WAITING) drop(waiting.keys().next().value!);
      waiting.set(request, { atMs, tokens, overtaken: 0 });
      waitingTokens += tokens;
      if (dispatchMs > atMs) {
        if (!(earlierDispatchMs > atMs)) earlierDispatchMs = atMs;
        return;
      }
      earlierDispatchMs = dispatchMs;
      dispatchMs = atMs;
    },
    firstToken(request, atMs) {
      if (waiting.has(request)) overtake(request);
      drop(request);
      noteFirstToken(atMs);
    },
    end: drop,
    read(nowMs, into) {
      for (const [request, { atMs }] of waiting) {
        if (nowMs - atMs <= MAX_WAIT_MS) break;
        drop(request);
      }
      const isKnown = nowMs - dispatchMs <= MAX_AGE_MS || waiting.size > 0;
      const oldest = waiting.size === 0 ? undefined : waiting.values().next().value;
      const sinceFirstTokenMs = nowMs - firstTokenMs;
      const isPaced = sinceFirstTokenMs <= MAX_AGE_MS;
      into[0] = isPaced ? Math.max(0, sinceFirstTokenMs) : Number.NaN;
      into[1] = isPaced ? gapMs : Number.NaN;
      into[2] = isKnown ? waitingTokens : Number.NaN;
      into[3] = isKnown ? Math.max(0, nowMs - (oldest?.atMs ?? nowMs)) : Number.NaN;
      into[4] = isPaced && isKnown ? gapMs * waiting.size : Number.NaN;
      into[5] = limitAge(nowMs - dispatchMs);
      into[6] = limitAge(nowMs - earlierDispatchMs);
    },
  };
}

function limitAge(ageMs: number): number {
  return ageMs <= MAX_AGE_MS ? Math.max(0, ageMs) : Number.NaN;
}
