/** Lists the open streams of a connection, limits their number, and ends the one that keeps most. */
import { IdTable } from '../../memory/id-table.ts';
import { COST, type Share } from '../budget/turns.ts';
import { MAX_WINDOW } from '../frames/frames.ts';
import { ClosedStreams } from './closed-streams.ts';
import type { Http2Stream } from './stream.ts';

/** A client that sends or takes as many bytes goes on. One that drips them waits. */
const PROGRESS_BYTES = 16_384;

export const MAX_STREAMS = 1024;

/** The streams of a connection: those that are open, those that came with this read, and what is known of the others. */
export class StreamTable {
  readonly closed = new ClosedStreams();
  readonly #monotonicMs: () => number;
  readonly #streams = new IdTable<Http2Stream>();
  /** The streams that came with this read. */
  #newStreams: Http2Stream[] = [];
  /** Streams above this are refused. */
  #maxId = MAX_WINDOW;
  #changedMs: number;
  /** Bytes of calls that came or went since then. */
  #progressBytes = 0;
  /** A stream ended in this read. */
  #hasEnded = false;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#changedMs = monotonicMs();
  }

  get size(): number {
    return this.#streams.size;
  }

  /** When a stream was opened or ended last, or went on. */
  get changedMs(): number {
    return this.#changedMs;
  }

  /** Whether the server can do nothing for any of them before its client goes on. */
  get waitForClient(): boolean {
    return this.#streams.every(({ waitsForClient }) => waitsForClient);
  }

  /** A copy, ordered by id: the caller may end streams while it goes through them. */
  list(): readonly Http2Stream[] {
    return this.#streams.list();
  }

  get(streamId: number): Http2Stream | undefined {
    return this.#streams.get(streamId);
  }

  mayOpen(streamId: number): boolean {
    return streamId <= this.#maxId && this.#streams.size < MAX_STREAMS;
  }

  /** Takes no more streams than were opened so far. */
  refuseMore(): void {
    this.#maxId = this.closed.lastId;
  }

  add(stream: Http2Stream): void {
    this.#streams.add(stream);
    this.#newStreams.push(stream);
  }

  /** Returns false when it is gone already. */
  delete(stream: Http2Stream): boolean {
    if (!this.#streams.delete(stream)) return false;
    this.#hasEnded = true;
    return true;
  }

  /** The read is used up: calls `keep` for the streams that came with it and are still open. */
  endRead(keep: (stream: Http2Stream) => void): void {
    const streams = this.#newStreams;
    if (streams.length === 0 && !this.#hasEnded) return;
    if (streams.length > 0) this.#newStreams = [];
    if (this.#streams.size > 0) for (const stream of streams) if (this.#isOpen(stream)) keep(stream);
    this.markProgress();
  }

  /** Few in a turn: a connection has a thousand, and to end them all at once would let every other caller wait. */
  async endAll(share: Share, end: (stream: Http2Stream) => void): Promise<void> {
    for (const stream of this.#streams.list()) {
      if (!this.#isOpen(stream)) continue;
      await share.take(COST.drop);
      end(stream);
    }
  }

  #isOpen(stream: Http2Stream): boolean {
    return this.#streams.get(stream.id) === stream;
  }

  /** From now on the connection is idle, or waits for its client, if it does. */
  markProgress(): void {
    this.#hasEnded = false;
    this.#progressBytes = 0;
    this.#changedMs = this.#monotonicMs();
  }

  /** The client sent or took bytes of a call, in frames of any size. */
  countProgress(bytes: number): void {
    this.#progressBytes += bytes;
    if (this.#progressBytes >= PROGRESS_BYTES) this.markProgress();
  }

  /** Ends the call that keeps most. Returns false when that leaves all that is kept, or nothing is. */
  shedLargest(): boolean {
    const largest = this.#findLargest(false);
    if (largest === undefined) return false;
    const { keptBytes } = largest;
    largest.listener?.onShed();
    return !this.#isOpen(largest) || largest.keptBytes < keptBytes;
  }

  /** Ends the largest of the calls whose request is not complete. With each message that is used while the window is shut. */
  shedUnfinished(): void {
    this.#findLargest(true)?.listener?.onShed();
  }

  /** Returns the oldest of the calls that keep most, or undefined when none keeps anything. */
  #findLargest(isOfUnfinished: boolean): Http2Stream | undefined {
    let largest: Http2Stream | undefined;
    let most = 1;
    this.#streams.visit((stream) => {
      if (isOfUnfinished && stream.listener?.isUnfinished !== true) return;
      const { keptBytes } = stream;
      if (keptBytes < most || (keptBytes === most && largest !== undefined && largest.id < stream.id)) return;
      most = keptBytes;
      largest = stream;
    });
    return largest;
  }

  /** The server ends: requests that are still not complete are not waited for. */
  cutUnfinished(): void {
    for (const { listener } of this.#streams.list()) if (listener?.isUnfinished) listener.onCut('the server stops');
  }
}
