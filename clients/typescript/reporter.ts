/** Keeps events until the service has taken them: it sends them in batches, and a batch without an answer again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Event, Reported, ReportOptions, Stats } from './messages.ts';

const MAX_BATCH = 500;
/** How many events more the next full batch may have, after one was refused and sent again in halves. */
const BATCH_GROWTH = 10;
/** Events that wait while the service is away. Beyond it, events are dropped and counted. */
const MAX_WAITING = 10_000;
/** Events of this time share a batch. */
const SEND_EVERY_MS = 100;
const RETRY_AFTER_MS = 1000;
/** The longest pause, even if the answer asks for a longer one. */
const LONGEST_RETRY_AFTER_MS = 300_000;
const CLOSE_WITHIN_MS = 5000;

export type Taken = Pick<Reported, 'accepted' | 'refused'>;

export interface Reporter {
  /** Never waits and never throws. */
  readonly send: (event: Event) => void;
  readonly stats: () => Stats;
  /** Sends the events that wait, for at most 5 s, and says what became of all of them. */
  readonly close: () => Promise<Reported>;
}

/** What a batch met that was not taken. */
export interface Failure {
  /** The service never takes this batch: it cannot read an event of it, or the batch is too large. */
  readonly isFinal: boolean;
  /** When the service wants the next attempt; 0 when it does not say. */
  readonly retryAfterMs: number;
}

export interface Transport<Encoded> {
  /** Throws at an event that cannot be encoded. */
  encode(event: Event): Encoded;
  /** Resolves once the service has answered. */
  sendBatch(events: readonly Encoded[]): Promise<Taken>;
  /** Describes what `sendBatch` rejects with. */
  describeFailure(error: unknown): Failure;
}

export function createReporter<Encoded>(transport: Transport<Encoded>, { onError }: ReportOptions): Reporter {
  const waiting: Encoded[] = [];
  const reported = { accepted: 0, refused: 0, dropped: 0 };
  let sending: Promise<void> | undefined;
  const closing = new AbortController();
  let lastError: unknown;
  const callOnError = limitOnError(onError);
  const limit = createBatchLimit();

  /** Returns the time to the next batch: none after a full one, for more events wait. */
  async function trySend(): Promise<number> {
    const batch = waiting.slice(0, limit.events);
    try {
      const { accepted, refused } = await transport.sendBatch(batch);
      // close() gave up, and counted them as dropped.
      if (waiting.splice(0, batch.length).length === 0) return 0;
      reported.accepted += accepted;
      reported.refused += refused;
      lastError = undefined;
      return limit.growIfFull(batch.length) || closing.signal.aborted ? 0 : SEND_EVERY_MS;
    } catch (error) {
      return settle(error, batch.length);
    }
  }

  /**
   * Halves a batch that was refused for good, and drops an event that was refused alone. Any other batch is sent again, which is
   * safe: the service refuses what it already has.
   */
  function settle(error: unknown, count: number): number {
    const { isFinal, retryAfterMs } = transport.describeFailure(error);
    if (isFinal && limit.halve(count)) return 0;
    lastError = error;
    callOnError(error);
    if (!isFinal) return spreadRetries(retryAfterMs);
    reported.dropped += waiting.splice(0, count).length;
    return limit.drop() || closing.signal.aborted ? 0 : spreadRetries(retryAfterMs);
  }

  async function sendAll(): Promise<void> {
    await pause(SEND_EVERY_MS, closing.signal);
    while (waiting.length > 0) await pause(await trySend(), closing.signal);
    sending = undefined;
  }

  return {
    send(event) {
      if (closing.signal.aborted || waiting.length >= MAX_WAITING) {
        reported.dropped++;
        return;
      }
      try {
        checkTexts(event);
        waiting.push(transport.encode(event));
        sending ??= sendAll();
      } catch (error) {
        reported.refused++;
        lastError = error;
      }
    },
    stats: () => ({ ...reported, waiting: waiting.length, error: lastError }),
    async close() {
      closing.abort();
      await waitToClose(sending);
      reported.dropped += waiting.splice(0).length;
      return { ...reported };
    },
  };
}

/** Calls `onError` once a second at most. One that throws must not stop the reporter. */
function limitOnError(onError: ReportOptions['onError']): (error: unknown) => void {
  let calledMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    const nowMs = performance.now();
    if (onError === undefined || nowMs - calledMs < RETRY_AFTER_MS) return;
    calledMs = nowMs;
    void Promise.resolve(error).then(onError).catch(ignore);
  };
}

/** Counts how many events a batch may have, and knows whether any was taken. */
function createBatchLimit() {
  let events = MAX_BATCH;
  let hasTakenSinceDrop = false;
  return {
    get events() {
      return events;
    },
    /** Returns false for one event, which has no halves. */
    halve(count: number): boolean {
      if (count === 1) return false;
      events = Math.floor(count / 2);
      return true;
    },
    /** Returns false when a batch that was taken had fewer events than it may. */
    growIfFull(count: number): boolean {
      hasTakenSinceDrop = true;
      if (count < events) return false;
      events = Math.min(events + BATCH_GROWTH, MAX_BATCH);
      return true;
    },
    /** Returns false when nothing was taken since the last drop, which asks for a pause: a bad event must not slow down the good ones. */
    drop(): boolean {
      const hasTaken = hasTakenSinceDrop;
      hasTakenSinceDrop = false;
      return hasTaken;
    },
  };
}

/** Throws at half a surrogate pair: the service cannot read it, and over gRPC would refuse the whole batch. */
function checkTexts(value: unknown): void {
  if (typeof value === 'string' && /\p{Surrogate}/u.test(value))
    throw new Error(`Cannot encode ${JSON.stringify(value)}: it has half a surrogate pair`);
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(checkTexts);
}

/** Does not keep the process alive. The signal ends a pause that began before it. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { ref: false, ...(signal.aborted ? {} : { signal }) }).catch(ignore);
}

async function waitToClose(sending: Promise<void> | undefined): Promise<void> {
  const isOver = new AbortController();
  await Promise.race([sending, sleep(CLOSE_WITHIN_MS, undefined, { signal: isOver.signal }).catch(ignore)]);
  isOver.abort();
}

/** Gateways do not come back all at once. */
function spreadRetries(retryAfterMs: number): number {
  return Math.min(Math.max(RETRY_AFTER_MS, retryAfterMs), LONGEST_RETRY_AFTER_MS) * (1 + Math.random() / 4);
}

function ignore(): void {}
