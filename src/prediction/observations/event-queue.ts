/**
 * Queues events of all reports for commits in batches, and lets senders wait when it is full (backpressure). An event that finds
 * no place stays undecoded, and its bytes count as memory of its call. Once the call has ended it waits no more.
 */
import { type FailureCode, isFailure } from '../../errors.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import type { ObservationEvent, ObservationSink } from '../schema/observation-event.ts';

/** Events of all reports that were read and are not stored yet. More would fill the memory, and each garbage collection would copy them. */
export const MAX_EVENTS = 128;
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

/** The report that learns what became of its events, and waits in the queue itself while there is no place for the next of them. */
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
  /** Reports that wait for a place, in the order in which they came. */
  readonly #waiters = new LinkedQueue<EventReport>();
  /** Events that have a place. */
  #waiting: ReportedEvent[] = [];
  #isStoring = false;
  #isGiving = false;

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

  /** Gives places to the reports that wait longest. These take events at once, and may leave places meanwhile. */
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

/** These say that the store is away, which no event causes; what it has stored may be unknown then. */
const OF_THE_STORE: ReadonlySet<FailureCode> = new Set(['unavailable', 'deadline']);

/** Whether the store refused a row: then the commit has certainly stored nothing. A fault of the program is no failure. */
function mayBeOfOneEvent(error: unknown): boolean {
  return isFailure(error) && !OF_THE_STORE.has(error.code);
}
