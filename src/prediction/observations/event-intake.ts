/** Accepts the events of one report, and refuses wrong ones one by one. */
import { isFailure } from '../../errors.ts';
import type { ObservationEvent } from '../schema/observation-event.ts';
import { checkDraft, type EventDraft, readAheadMs } from './event-draft.ts';
import { type EventPace, PACE_COST } from './event-pace.ts';
import type { EventLane, EventQueue, EventReport, ReportedEvent } from './event-queue.ts';

/** The answer to a report. */
export interface ReportSummary {
  readonly accepted: number;
  readonly refused: number;
  /** The first refusals, in the order of the events. */
  readonly refusals: readonly Refusal[];
}

export interface Refusal {
  readonly index: number;
  readonly requestId: string;
  readonly reason: string;
}

export interface EventIntakeDependencies {
  readonly queue: EventQueue;
  readonly nowMs: () => number;
  /** Called when the queue has a place for the next event, after `reserve` returned false. */
  readonly onRoom: () => void;
  /** By how much the whole observations of a batch move back, since its latest is dated ahead. */
  readonly aheadMs?: number;
}

const MAX_REFUSALS = 100;

/** The events of one report, which are stored together with those of others. */
export class EventIntake implements EventReport {
  previous: EventReport | undefined;
  next: EventReport | undefined;
  readonly #dependencies: EventIntakeDependencies;
  readonly #lane: EventLane;
  #failure: unknown;
  #count = 0;
  /** Events that are not stored yet. */
  #pending = 0;
  #accepted = 0;
  #refused = 0;
  readonly #refusals: Refusal[] = [];
  #onSettled: (() => void) | undefined;
  /** Whether a place in the queue is reserved for the next event. */
  #hasPlace = false;

  constructor(dependencies: EventIntakeDependencies) {
    this.#dependencies = dependencies;
    this.#lane = dependencies.queue.openLane();
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Reserves a place in the queue for the next event. Returns false if the queue is full: then the report waits for a place, and
   * allocates nothing for it, since hundreds may wait.
   */
  reserve(): boolean {
    this.#hasPlace ||= this.#lane.takePlace(this);
    return this.#hasPlace;
  }

  onPlace(): void {
    this.#hasPlace = true;
    this.#dependencies.onRoom();
  }

  /**
   * Reads and takes an event, for which a place was reserved. `read` makes its draft from `source`; if it throws a failure, the
   * event is refused for that reason.
   */
  take<T>(read: (source: T) => EventDraft, source: T): void {
    const index = this.#count;
    this.#count += 1;
    this.#hasPlace = false;
    let usesPlace = false;
    try {
      usesPlace = !this.hasFailed && this.#add(index, read, source);
    } finally {
      if (!usesPlace) this.#lane.leave(1);
    }
    this.#throwIfFailed();
  }

  /** Resolves once every accepted event is durable. */
  async finish(): Promise<ReportSummary> {
    if (this.#pending > 0 && !this.hasFailed)
      await new Promise<void>((resolve) => {
        this.#onSettled = resolve;
      });
    this.#throwIfFailed();
    return { accepted: this.#accepted, refused: this.#refused, refusals: this.#refusals };
  }

  /** Must be called once when no more events come, also if the report has failed: the lane then counts one report less. */
  close(): void {
    this.#lane.stopWaiting(this);
    if (this.#hasPlace) this.#lane.leave(1);
    this.#hasPlace = false;
    this.#lane.close();
  }

  settle({ index, event: { requestId } }: ReportedEvent, refusal: string | undefined): void {
    if (refusal === undefined) this.#accepted += 1;
    else this.#refuse({ index, requestId, reason: refusal });
    this.#pending -= 1;
    if (this.#pending === 0) this.#onSettled?.();
  }

  fail(error: unknown): void {
    this.#failure ??= error;
    this.#onSettled?.();
  }

  /** Returns false when the event is refused. */
  #add<T>(index: number, read: (source: T) => EventDraft, source: T): boolean {
    let draft: EventDraft | undefined;
    try {
      draft = read(source);
      const event = this.#moveBack(draft, checkDraft(draft, this.#dependencies.nowMs()));
      this.#pending += 1;
      this.#lane.add({ report: this, index, event });
      return true;
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.#refuse({ index, requestId: draft?.requestId.slice(0, 256) ?? '', reason: describe(error.message) });
      return false;
    }
  }

  #moveBack({ at }: EventDraft, event: ObservationEvent): ObservationEvent {
    const { aheadMs = 0 } = this.#dependencies;
    if (aheadMs === 0 || at === undefined || event.kind !== 'observation') return event;
    return { ...event, atMs: Math.max(0, event.atMs - aheadMs) };
  }

  /** Sorts refusals by event: those of the sink come later than those of the checks here. */
  #refuse(refusal: Refusal): void {
    this.#refused += 1;
    const refusals = this.#refusals;
    let position = refusals.length;
    while (position > 0 && refusals[position - 1]!.index > refusal.index) position -= 1;
    if (position === MAX_REFUSALS) return;
    refusals.splice(position, 0, refusal);
    if (refusals.length > MAX_REFUSALS) refusals.pop();
  }

  #throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

interface Batch<T> {
  readonly events: readonly T[];
  readonly read: (event: T) => EventDraft;
}

/**
 * Returns how far the latest whole observation of a batch is dated ahead. All of them move back by this, so that the times
 * between their requests stay. If each one that is ahead were dated to its report, prompts would seem to be computed at the same
 * moment.
 */
export async function measureBatchAhead<T>(
  { events, read }: Batch<T>,
  nowMs: number,
  pace: EventPace,
): Promise<number> {
  let aheadMs = 0;
  for (const event of events) {
    await pace(PACE_COST.read);
    aheadMs = Math.max(aheadMs, readAhead(read, event, nowMs));
  }
  return aheadMs;
}

/** An event that cannot be read is refused when it is taken. */
function readAhead<T>(read: Batch<T>['read'], event: T, nowMs: number): number {
  try {
    return readAheadMs(read(event), nowMs);
  } catch (error) {
    if (!isFailure(error)) throw error;
    return 0;
  }
}

/** Removes the action, which a list of reasons need not repeat. */
function describe(message: string): string {
  return message.replace(/^Cannot read the message: /, '');
}
