/** Sends events in batches in the background, with retries; drops further events when too many wait. Routing never waits for the service. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Event, Reported, ReportOptions, Stats } from './messages.ts';

const MAX_BATCH = 500;
/** After a batch was refused and halved, each full batch that is taken raises the limit by this many events. */
const BATCH_GROWTH = 10;
/** The most events that wait while the service is unavailable. Further events are dropped and counted. */
const MAX_WAITING = 10_000;
/** Events of this span of time share a batch. */
const SEND_EVERY_MS = 100;
const RETRY_AFTER_MS = 1000;
/** The longest pause before a retry, even if the answer asks for a longer one. */
const LONGEST_RETRY_AFTER_MS = 300_000;
const CLOSE_WITHIN_MS = 5000;

export type Taken = Pick<Reported, 'accepted' | 'refused'>;

export interface Reporter {
  /** Never waits and never throws. */
  readonly send: (event: Event) => void;
  readonly stats: () => Stats;
  /** Sends waiting events for at most 5 s, and resolves with what became of all events. */
  readonly close: () => Promise<Reported>;
}

/** Why a batch was not taken. */
export interface Failure {
  /** True if the service never takes this batch: it cannot read an event, or the batch is too large. */
  readonly isFinal: boolean;
  /** The time after which to try again; 0 if the service does not ask for one. */
  readonly retryAfterMs: number;
}

export interface Transport<Encoded> {
  /** Throws for an event that cannot be encoded. */
  encode(event: Event): Encoded;
  /** Resolves once the service has answered. */
  sendBatch(events: readonly Encoded[]): Promise<Taken>;
  /** Describes an error of `sendBatch`. */
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

  /** Returns the time to the next batch: 0 after a full one, because more events wait. */
  async function trySend(): Promise<number> {
    const batch = waiting.slice(0, limit.events);
    try {
      const { accepted, refused } = await transport.sendBatch(batch);
      // close() gave up, and counted these events as dropped.
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
   * safe: the service refuses events that it already has.
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

/** Calls `onError` at most once a second. An error in it must not stop the reporter. */
function limitOnError(onError: ReportOptions['onError']): (error: unknown) => void {
  let calledMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    const nowMs = performance.now();
    if (onError === undefined || nowMs - calledMs < RETRY_AFTER_MS) return;
    calledMs = nowMs;
    void Promise.resolve(error).then(onError).catch(ignore);
  };
}

/** Limits the events of a batch, and tracks if a batch was taken since the last drop. */
function createBatchLimit() {
  let events = MAX_BATCH;
  let hasTakenSinceDrop = false;
  return {
    get events() {
      return events;
    },
    /** Returns false for a single event, which cannot be halved. */
    halve(count: number): boolean {
      if (count === 1) return false;
      events = Math.floor(count / 2);
      return true;
    },
    /** Returns false if a taken batch was not full. */
    growIfFull(count: number): boolean {
      hasTakenSinceDrop = true;
      if (count < events) return false;
      events = Math.min(events + BATCH_GROWTH, MAX_BATCH);
      return true;
    },
    /** Returns false if no batch was taken since the last drop. Only then a pause follows: a bad event must not slow down good ones. */
    drop(): boolean {
      const hasTaken = hasTakenSinceDrop;
      hasTakenSinceDrop = false;
      return hasTaken;
    },
  };
}

/** Throws for a lone surrogate: the service cannot read it, and over gRPC it would refuse the whole batch. */
function checkTexts(value: unknown): void {
  if (typeof value === 'string' && /\p{Surrogate}/u.test(value))
    throw new Error(`Cannot encode ${JSON.stringify(value)}: it has half a surrogate pair`);
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(checkTexts);
}

/** Waits without keeping the process alive. The signal ends a pause that began before it. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { ref: false, ...(signal.aborted ? {} : { signal }) }).catch(ignore);
}

async function waitToClose(sending: Promise<void> | undefined): Promise<void> {
  const isOver = new AbortController();
  await Promise.race([sending, sleep(CLOSE_WITHIN_MS, undefined, { signal: isOver.signal }).catch(ignore)]);
  isOver.abort();
}

/** Returns a random pause, so that gateways do not all come back at once. */
function spreadRetries(retryAfterMs: number): number {
  return Math.min(Math.max(RETRY_AFTER_MS, retryAfterMs), LONGEST_RETRY_AFTER_MS) * (1 + Math.random() / 4);
}

function ignore(): void {}
