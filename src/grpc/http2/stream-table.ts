/** Lists the open streams of a connection, limits their number, and ends the one that keeps most. */
import { IdTable } from '../../memory/id-table.ts';
import { COST, type Share } from '../budget/turns.ts';
import { MAX_WINDOW } from '../frames/frames.ts';
import { ClosedStreams } from './closed-streams.ts';
import type { Http2Stream } from './stream.ts';

export const MAX_STREAMS = 1024;

/** The streams of a connection: those that are open, those that came with this read, and what is known of the others. */
export class StreamTable {
  readonly closed = new ClosedStreams();
  readonly #streams = new IdTable<Http2Stream>();
  /** The streams that came with this read. */
  #newStreams: Http2Stream[] = [];
  /** Streams above this are refused. */
  #maxId = MAX_WINDOW;

  get size(): number {
    return this.#streams.size;
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
    return this.#streams.delete(stream);
  }

  /** The read is used up: calls `keep` for the streams that came with it and are still open. */
  endRead(keep: (stream: Http2Stream) => void): void {
    const streams = this.#newStreams;
    if (streams.length === 0) return;
    this.#newStreams = [];
    if (this.#streams.size > 0) for (const stream of streams) if (this.#isOpen(stream)) keep(stream);
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
