/**
 * Queues events of all reports for commits in batches, and lets senders wait when it is full (backpressure). An event that finds
 * no place waits as the bytes that came, and those are bounded by the windows of the transport.
 */
import type { ObservationEvent, ObservationSink } from '../schema/observation-event.ts';

/** Events of all reports that were read and are not stored yet. More would fill the memory, and each garbage collection would copy them. */
export const MAX_EVENTS = 256;
/** Other events are read while these are stored. */
const MAX_BATCH = MAX_EVENTS / 2;
/** Transactions at a time. On PostgreSQL each statement is a round trip, so that a single one would be slow. */
const LANES = 4;

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

export class EventQueue {
  readonly #lanes: readonly EventLane[];
  #places = MAX_EVENTS;
  /** In the order in which they came. */
  readonly #waiting: (() => void)[] = [];
  #opened = 0;

  constructor(sink: ObservationSink) {
    this.#lanes = Array.from({ length: LANES }, () => new EventLane(sink, (places) => this.leave(places)));
  }

  /** The lane of a new report. All events of a report go one way, since they are learned from in their order. */
  openLane(): EventLane {
    this.#opened += 1;
    return this.#lanes[this.#opened % LANES]!;
  }

  /** A place for one event; undefined when it is there at once. */
  takePlace(): Promise<void> | undefined {
    if (this.#places === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#places -= 1;
    return undefined;
  }

  /** Gives places to those that wait longest. */
  leave(places: number): void {
    this.#places += places;
    const next = this.#waiting.splice(0, this.#places);
    this.#places -= next.length;
    for (const goOn of next) goOn();
  }
}

/** Stores the events that came while those before them were stored. */
export class EventLane {
  readonly #sink: ObservationSink;
  readonly #leave: (places: number) => void;
  #waiting: ReportedEvent[] = [];
  #isStoring = false;

  constructor(sink: ObservationSink, leave: (places: number) => void) {
    this.#sink = sink;
    this.#leave = leave;
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
    while (this.#waiting.length > 0) await this.#store(this.#waiting.splice(0, MAX_BATCH));
    this.#isStoring = false;
  }

  async #store(batch: readonly ReportedEvent[]): Promise<void> {
    try {
      const { refusals } = await this.#sink.report(batch.map(({ event }) => event));
      let next = 0;
      for (const [position, reported] of batch.entries()) {
        const refusal = refusals[next]?.index === position ? refusals[next++] : undefined;
        reported.report.settle(reported, refusal?.reason);
      }
    } catch (error) {
      this.#fail(batch, error);
    }
    this.#leave(batch.length);
  }

  /** Later events of the reports in the batch must not be stored without it. */
  #fail(batch: readonly ReportedEvent[], error: unknown): void {
    for (const { report } of batch) report.fail(error);
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ report }) => !report.hasFailed);
    this.#leave(waiting.length - this.#waiting.length);
  }
}
