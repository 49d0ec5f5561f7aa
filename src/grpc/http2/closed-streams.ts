/**
 * Decides whether a frame on a closed stream is an error or a late frame that is dropped (RFC 9113 §5.1). Most are errors.
 * But a client may have sent frames before it read our reset of the stream: these are dropped.
 */
import { ConnectionError, ERROR } from '../frames/frames.ts';

/** How many of the streams that we reset are remembered while their client may not know. Late frames of older ones are dropped too. */
const MAX_RESET = 2048;
const MAX_GAPS = 64;

/** A range of stream ids that the client skipped, both ends included. They can never be opened. */
type Gap = readonly [first: number, last: number];

export class ClosedStreams {
  #lastId = 0;
  readonly #gaps: Gap[] = [];
  readonly #resetIds = new Set<number>();
  /** The newest stream that was removed from the set because the set was full. */
  #forgottenId = 0;

  /** The highest id of an opened stream. */
  get lastId(): number {
    return this.#lastId;
  }

  isIdle(streamId: number): boolean {
    return streamId > this.#lastId || streamId % 2 === 0;
  }

  open(streamId: number): void {
    if (streamId > this.#lastId + 2) {
      this.#gaps.push([this.#lastId + 1, streamId - 1]);
      if (this.#gaps.length > MAX_GAPS) this.#gaps.shift();
    }
    this.#lastId = streamId;
  }

  /** We reset the stream; its client may not know yet. */
  addReset(streamId: number): void {
    this.#resetIds.add(streamId);
    if (this.#resetIds.size <= MAX_RESET) return;
    const [oldest] = this.#resetIds;
    this.#resetIds.delete(oldest!);
    this.#forgottenId = Math.max(this.#forgottenId, oldest!);
  }

  /** The client ended or reset the stream too: a later frame is an error. */
  endByClient(streamId: number): void {
    this.#resetIds.delete(streamId);
  }

  /** Whether the client may have sent a frame of this stream before it knew of our reset. */
  mayReceive(streamId: number): boolean {
    return streamId <= this.#forgottenId || this.#resetIds.has(streamId);
  }

  /** Checks HEADERS on a stream that is not open. Throws unless they must be dropped. */
  checkHeaders(streamId: number): void {
    if (this.mayReceive(streamId)) return;
    if (this.#gaps.some(([first, last]) => first <= streamId && streamId <= last))
      throw new ConnectionError(ERROR.protocol, 'a stream is opened below another one');
    throw new ConnectionError(ERROR.streamClosed, 'a stream is opened twice');
  }
}
