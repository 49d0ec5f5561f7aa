/**
 * Queues events of all reports for commits in batches, and lets senders wait when it is full (backpressure). An event that finds
 * no place waits as the bytes that came, which count for its call. Once the call has ended it waits no more.
 */
import { Failure, type FailureCode, isFailure } from '../../errors.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import type { ObservationEvent, ObservationSink } from '../schema/observation-event.ts';

/** Events of all reports that were read and are not stored yet. More would fill the memory, and each garbage collection would copy them. */
export const MAX_EVENTS = 256;
/** Transactions at a time. On PostgreSQL each statement is a round trip, so that a single one would be slow. */
const LANES = 4;
/** Each lane has places of its own: those of a commit that hangs would otherwise be all of them in the end. */
export const MAX_LANE_EVENTS = MAX_EVENTS / LANES;

/** An event and the report to which it belongs. */
export interface ReportedEvent {
  readonly report: EventReport;
  readonly index: number;
  readonly event: ObservationEvent;
}

/** The report that learns what became of its events. */
export interface EventReport {
  readonly hasFailed: boolean;
  /** The event is durable, or was refused for this reason. */
  settle(reported: ReportedEvent, refusal: string | undefined): void;
  fail(error: unknown): void;
}

/** The call that sends a report. Its signal is asked for only when an event waits: most calls never make one. */
export interface Caller {
  readonly signal: AbortSignal;
}

interface Waiter extends Linked<Waiter> {
  readonly goOn: () => void;
}

// Made once: a thousand calls end with their connection.
const CALL_ENDED = new Failure('unavailable', 'Cannot report: the call has ended');

export class EventQueue {
  readonly #lanes: readonly EventLane[];

  constructor(sink: ObservationSink) {
    this.#lanes = Array.from({ length: LANES }, () => new EventLane(sink));
  }

  /**
   * The lane of a new report: the one with least to do, which is not one that hangs. All events of a report go one way, since they
   * are learned from in their order.
   */
  openLane(): EventLane {
    const lane = this.#lanes.reduce((least, other) => (other.load < least.load ? other : least));
    lane.open();
    return lane;
  }
}

/** Stores the events that came while those before them were stored. */
export class EventLane {
  readonly #sink: ObservationSink;
  #reports = 0;
  #places = MAX_LANE_EVENTS;
  /** Those that wait for a place, in the order in which they came. */
  readonly #waiters = new LinkedQueue<Waiter>();
  /** Events that have a place. */
  #waiting: ReportedEvent[] = [];
  #isStoring = false;

  constructor(sink: ObservationSink) {
    this.#sink = sink;
  }

  /** Its reports and their events. One that waits for a place counts as its report. */
  get load(): number {
    return this.#reports + MAX_LANE_EVENTS - this.#places;
  }

  /** A report begins. */
  open(): void {
    this.#reports += 1;
  }

  /** A report is over. */
  close(): void {
    this.#reports -= 1;
  }

  /** A place for one event; undefined when it is there at once. Rejects when the call ends before. */
  takePlace(caller: Caller | undefined): Promise<void> | undefined {
    if (this.#places === 0) return this.#waitForPlace(caller?.signal);
    this.#places -= 1;
    return undefined;
  }

  /** Gives places to those that wait longest. */
  leave(places: number): void {
    this.#places += places;
    for (let next = this.#waiters.first; next !== undefined && this.#places > 0; next = this.#waiters.first) {
      this.#waiters.delete(next);
      this.#places -= 1;
      next.goOn();
    }
  }

  /** The event must have a place, which it leaves once it is stored. */
  add(reported: ReportedEvent): void {
    this.#waiting.push(reported);
    if (!this.#isStoring) void this.#storeWaiting();
  }

  async #waitForPlace(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw CALL_ENDED;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { previous: undefined, next: undefined, goOn: resolve };
    const giveUp = (): void => {
      if (this.#waiters.delete(waiter)) reject(CALL_ENDED);
    };
    this.#waiters.add(waiter);
    signal?.addEventListener('abort', giveUp);
    await promise;
    // A long report waits many times.
    signal?.removeEventListener('abort', giveUp);
  }

  async #storeWaiting(): Promise<void> {
    this.#isStoring = true;
    // Events that come in the same turn join the batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#store(this.#waiting.splice(0));
    this.#isStoring = false;
  }

  async #store(batch: readonly ReportedEvent[]): Promise<void> {
    try {
      await this.#commit(batch);
    } catch (error) {
      const byReport = Map.groupBy(batch, ({ report }) => report);
      if (byReport.size === 1 || !mayBeOfOneEvent(error)) this.#fail(batch, error);
      else for (const events of byReport.values()) await this.#storeApart(events);
    }
    this.leave(batch.length);
  }

  /** Stores the events of one report. The commit that it shared has failed, and another report may be the cause. */
  async #storeApart(events: readonly ReportedEvent[]): Promise<void> {
    try {
      await this.#commit(events);
    } catch (error) {
      this.#fail(events, error);
    }
  }

  async #commit(batch: readonly ReportedEvent[]): Promise<void> {
    const { refusals } = await this.#sink.report(batch.map(({ event }) => event));
    let next = 0;
    for (const [position, reported] of batch.entries()) {
      const refusal = refusals[next]?.index === position ? refusals[next++] : undefined;
      reported.report.settle(reported, refusal?.reason);
    }
  }

  /** Later events of the reports in the batch must not be stored without it. */
  #fail(batch: readonly ReportedEvent[], error: unknown): void {
    for (const { report } of batch) report.fail(error);
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ report }) => !report.hasFailed);
    this.leave(waiting.length - this.#waiting.length);
  }
}

/** These say that the store is away, which no event causes; what it has stored may be unknown then. */
const OF_THE_STORE: ReadonlySet<FailureCode> = new Set(['unavailable', 'deadline']);

/** Whether the store refused a row: then the commit has certainly stored nothing. A fault of the program is no failure. */
function mayBeOfOneEvent(error: unknown): boolean {
  return isFailure(error) && !OF_THE_STORE.has(error.code);
}
