/** Accepts the events of one report and refuses wrong ones one by one; `observation-store.ts` joins the events of a request. */
import { isFailure } from '../../errors.ts';
import type { ObservationEvent, ObservationSink } from '../schema/observation-event.ts';
import { checkDraft, type EventDraft } from './event-draft.ts';
import type { EventQueueShare } from './event-queue-share.ts';

/** The answer to a report. */
export interface ReportSummary {
  readonly accepted: number;
  readonly refused: number;
  /** The first ones, by order of arrival. */
  readonly refusals: readonly Refusal[];
}

export interface Refusal {
  readonly index: number;
  readonly requestId: string;
  readonly reason: string;
}

export interface EventIntakeDependencies {
  readonly sink: ObservationSink;
  readonly queueShare: EventQueueShare;
  readonly nowMs: () => number;
}

const MAX_REFUSALS = 100;

interface Accepted {
  readonly index: number;
  readonly event: ObservationEvent;
}

/**
 * Batches the events of one report; `observation-store.ts` joins them. An event goes to the sink at once when none is being stored; those that come
 * meanwhile go together: a single event does not wait, and many share one commit.
 */
export class EventIntake {
  readonly #dependencies: EventIntakeDependencies;
  #waiting: Accepted[] = [];
  #underWay: Promise<void> | undefined;
  #failure: unknown;
  #count = 0;
  #accepted = 0;
  #refused = 0;
  #refusals: Refusal[] = [];

  constructor(dependencies: EventIntakeDependencies) {
    this.#dependencies = dependencies;
  }

  /** `read` makes the draft, and may throw a failure: then that is why the event is refused. */
  async take(read: () => EventDraft): Promise<void> {
    const index = this.#count;
    this.#count += 1;
    let draft: EventDraft | undefined;
    try {
      draft = read();
      this.#waiting.push({ index, event: checkDraft(draft, this.#dependencies.nowMs()) });
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.#refuse({ index, requestId: draft?.requestId.slice(0, 256) ?? '', reason: describe(error.message) });
      return;
    }
    if (this.#underWay === undefined) this.#underWay = this.#sendWaiting();
    else if (this.#waiting.length >= this.#dependencies.queueShare.share) await this.#underWay;
    this.#throwIfFailed();
  }

  /** Resolves once every accepted event is durable. */
  async finish(): Promise<ReportSummary> {
    await this.#underWay;
    this.#throwIfFailed();
    this.#orderRefusals();
    return { accepted: this.#accepted, refused: this.#refused, refusals: this.#refusals };
  }

  async #sendWaiting(): Promise<void> {
    const { queueShare } = this.#dependencies;
    queueShare.enter();
    // What comes in the same turn goes along.
    await Promise.resolve();
    try {
      while (this.#waiting.length > 0) await this.#send(this.#waiting.splice(0, queueShare.share));
    } catch (error) {
      this.#failure = error;
      this.#waiting = [];
    } finally {
      queueShare.leave();
      this.#underWay = undefined;
    }
  }

  async #send(batch: readonly Accepted[]): Promise<void> {
    const { accepted, refusals } = await this.#dependencies.sink.report(batch.map(({ event }) => event));
    this.#accepted += accepted;
    for (const { index, reason } of refusals) {
      const refused = batch[index];
      if (refused !== undefined) this.#refuse({ index: refused.index, requestId: refused.event.requestId, reason });
    }
  }

  #refuse(refusal: Refusal): void {
    this.#refused += 1;
    this.#refusals.push(refusal);
    // What the sink refuses comes later than what was refused at the door.
    if (this.#refusals.length > 2 * MAX_REFUSALS) this.#orderRefusals();
  }

  #orderRefusals(): void {
    this.#refusals = this.#refusals.toSorted((left, right) => left.index - right.index).slice(0, MAX_REFUSALS);
  }

  #throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** Inside a list of reasons, the action need not be said again. */
function describe(message: string): string {
  return message.replace(/^Cannot read the message: /, '');
}
