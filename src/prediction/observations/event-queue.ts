/**
 * Queues events of all reports for commits in batches, and makes senders wait when it is full (backpressure). An event that waits
 * for a place stays undecoded, and its bytes count as memory of its call. It stops waiting when the call ends.
 */
import { type FailureCode, isFailure } from '../../errors.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import type { ObservationEvent, ObservationSink } from '../schema/observation-event.ts';

/**
 * The most events of all reports that were read and are not stored yet. More would fill the memory, and each garbage collection
 * would copy them.
 */
export const MAX_EVENTS = 128;
/** How many transactions run at a time. On PostgreSQL each statement is a round trip, so a single transaction at a time would be slow. */
const LANES = 4;
/** Each lane has places of its own. Otherwise a commit that hangs would hold all of them in the end. */
export const MAX_LANE_EVENTS = MAX_EVENTS / LANES;

/** An event and the report to which it belongs. */
export interface ReportedEvent {
  readonly report: EventReport;
  readonly index: number;
  readonly event: ObservationEvent;
}

/** A report that receives the results of its events. It waits in the queue itself while there is no place for its next event. */
export interface EventReport extends Linked<EventReport> {
  readonly hasFailed: boolean;
  /** It has a place for one event now, and waits no longer. */
  onPlace(): void;
  /** The event is durable, or was refused for this reason. */
  settle(reported: ReportedEvent, refusal: string | undefined): void;
  fail(error: unknown): void;
}

export class EventQueue {
  readonly #lanes: readonly EventLane[];

  constructor(sink: ObservationSink) {
    this.#lanes = Array.from({ length: LANES }, () => new EventLane(sink));
  }

  /**
   * Opens the lane of a new report: the one with the least load, which is not one that hangs. All events of a report use one
   * lane, since they are learned from in their order.
   */
  openLane(): EventLane {
    const lane = this.#lanes.reduce((least, other) => (other.load < least.load ? other : least));
    lane.open();
    return lane;
  }
}

/** Stores events in batches: each batch has the events that came while the one before was stored. */
export class EventLane {
  readonly #sink: ObservationSink;
  #reports = 0;
  #places = MAX_LANE_EVENTS;
  /** Reports that wait for a place, in the order in which they came. */
  readonly #waiters = new LinkedQueue<EventReport>();
  /** Events that have a place and are in no batch yet. */
  #waiting: ReportedEvent[] = [];
  #isStoring = false;
  #isGiving = false;

  constructor(sink: ObservationSink) {
    this.#sink = sink;
  }

  /** The number of its reports and of their events that have a place. */
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

  /** Takes a place for one event. Returns false when no place is free: then the report waits, and `onPlace` is called. */
  takePlace(report: EventReport): boolean {
    if (this.#places === 0 || this.#waiters.first !== undefined) {
      this.#waiters.add(report);
      return false;
    }
    this.#places -= 1;
    return true;
  }

  stopWaiting(report: EventReport): void {
    this.#waiters.delete(report);
  }

  /** Frees places, and gives them to the reports that have waited longest. These take events at once, and may free places meanwhile. */
  leave(places: number): void {
    this.#places += places;
    if (this.#isGiving) return;
    this.#isGiving = true;
    try {
      for (let next = this.#waiters.first; next !== undefined && this.#places > 0; next = this.#waiters.first) {
        this.#waiters.delete(next);
        this.#places -= 1;
        next.onPlace();
      }
    } finally {
      this.#isGiving = false;
    }
  }

  /** The event must have a place, which it leaves once it is stored. */
  add(reported: ReportedEvent): void {
    this.#waiting.push(reported);
    if (!this.#isStoring) void this.#storeWaiting();
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

/** Failures that no event causes: the store is unreachable or too slow. Whether it has committed may be unknown then. */
const OF_THE_STORE: ReadonlySet<FailureCode> = new Set(['unavailable', 'deadline']);

/** Whether the store refused a row, so that the commit has certainly stored nothing. An error of the program is not a `Failure`. */
function mayBeOfOneEvent(error: unknown): boolean {
  return isFailure(error) && !OF_THE_STORE.has(error.code);
}
