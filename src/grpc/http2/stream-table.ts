/** Lists the open streams of a connection, limits their number, and ends the one that keeps the most bytes. */
import { IdTable } from '../../memory/id-table.ts';
import { COST, type Share } from '../budget/turns.ts';
import { MAX_WINDOW } from '../frames/frames.ts';
import { ClosedStreams } from './closed-streams.ts';
import type { Http2Stream } from './stream.ts';

export const MAX_STREAMS = 1024;

/** The streams of a connection: the open ones, those that came with this read, and the record of closed ones. */
export class StreamTable {
  readonly closed = new ClosedStreams();
  readonly #streams = new IdTable<Http2Stream>();
  /** The streams that came with this read. */
  #newStreams: Http2Stream[] = [];
  /** Streams with a higher id are refused. */
  #maxId = MAX_WINDOW;

  get size(): number {
    return this.#streams.size;
  }

  /** Whether all streams wait for the client. */
  get waitForClient(): boolean {
    return this.#streams.every(({ waitsForClient }) => waitsForClient);
  }

  /** A copy, ordered by id: the caller may end streams while it iterates. */
  list(): readonly Http2Stream[] {
    return this.#streams.list();
  }

  get(streamId: number): Http2Stream | undefined {
    return this.#streams.get(streamId);
  }

  mayOpen(streamId: number): boolean {
    return streamId <= this.#maxId && this.#streams.size < MAX_STREAMS;
  }

  /** Refuses all streams that are not opened yet. */
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

  /** Called when the read is used up: calls `keep` for the streams that came with it and are still open. */
  endRead(keep: (stream: Http2Stream) => void): void {
    const streams = this.#newStreams;
    if (streams.length === 0) return;
    this.#newStreams = [];
    if (this.#streams.size > 0) for (const stream of streams) if (this.#isOpen(stream)) keep(stream);
  }

  /** Ends few streams in each turn: ending all thousand of a connection at once would delay every other caller. */
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

  /** Ends the call that keeps the most bytes. Returns false when that frees nothing. */
  shedLargest(): boolean {
    const largest = this.#findLargest(false);
    if (largest === undefined) return false;
    const { keptBytes } = largest;
    largest.listener?.onShed();
    return !this.#isOpen(largest) || largest.keptBytes < keptBytes;
  }

  /** Ends the largest call whose request is incomplete. Called for each message that is used while the window is closed. */
  shedUnfinished(): void {
    this.#findLargest(true)?.listener?.onShed();
  }

  /** Returns the oldest of the calls that keep the most bytes, or undefined when no call keeps any. */
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

  /** The server stops: ends the requests that are still incomplete. */
  cutUnfinished(): void {
    for (const { listener } of this.#streams.list()) if (listener?.isUnfinished) listener.onCut('the server stops');
  }
}
