/** Runs one stream: receives the data of its request, and sends its answer within the windows. */
import type { NetworkUse } from '../../connections/network-use.ts';
import type { ByteQueue } from '../../memory/byte-queue.ts';
import type { Share } from '../budget/turns.ts';
import type { FrameWriter } from '../frames/frame-writer.ts';
import { ConnectionError, ERROR, FLAG, FRAME, MAX_WINDOW, STREAM_WINDOW } from '../frames/frames.ts';
import type { ConnectionMemory, CountedCall } from './connection-memory.ts';
import type { ControlFrameLimit } from './control-frame-limit.ts';
import type { Progress } from './progress.ts';
import type { BlockedStream, SendWindows } from './send-windows.ts';
import type { StreamListener } from './stream-listener.ts';
import { WaitingData } from './waiting-data.ts';

/** The members of a connection that its streams and calls use. */
export interface StreamConnection {
  readonly share: Share;
  readonly network: NetworkUse;
  readonly writer: FrameWriter;
  readonly memory: ConnectionMemory;
  readonly sendWindows: SendWindows;
  readonly controlFrames: ControlFrameLimit;
  readonly progress: Progress;
  flush(): void;
  flushSoon(): void;
  whenWritable(): Promise<void> | undefined;
  keepRead(): void;
  resetStream(streamId: number, code: number): void;
  forget(stream: Http2Stream): void;
}

const NOTHING = Buffer.alloc(0);
/** A data frame of fewer bytes does not raise the number of window updates and pings that the client may send. */
const MIN_DATA_BYTES = 256;

/** One call on the wire: its windows, and the bytes that wait for them. */
export class Http2Stream implements BlockedStream, CountedCall {
  readonly id: number;
  /** Links in the list of streams that wait for the window of the connection. */
  previous: BlockedStream | undefined;
  next: BlockedStream | undefined;
  readonly #connection: StreamConnection;
  listener: StreamListener | undefined;
  /** Bytes that the connection counts for the call itself once it outlives the read that brought it. */
  openBytes = 0;
  #sendWindow: number;
  #receiveWindow = STREAM_WINDOW;
  #credit = 0;
  #isRemoteEnded = false;
  /** Bytes that `content-length` announced and that have not arrived yet. */
  #contentLeft: number | undefined;
  #isLocalEnded = false;
  #isReset = false;
  /** Created when data finds a window closed. */
  #waiting: WaitingData | undefined;
  #keptBytes = 0;

  constructor(dependencies: {
    readonly connection: StreamConnection;
    readonly id: number;
    readonly sendWindow: number;
    readonly contentLength: number | undefined;
  }) {
    this.#connection = dependencies.connection;
    this.id = dependencies.id;
    this.#sendWindow = dependencies.sendWindow;
    this.#contentLeft = dependencies.contentLength;
  }

  get connection(): StreamConnection {
    return this.#connection;
  }

  get isReset(): boolean {
    return this.#isReset;
  }

  /** Whether data of the answer waits for a window. */
  get isWaiting(): boolean {
    return this.#waiting !== undefined && this.#waiting.bytes.length > 0;
  }

  /** Whether the call waits for its client, or is a watch. */
  get waitsForClient(): boolean {
    return this.isWaiting || this.listener?.waitsForClient === true;
  }

  /** The bytes of the call itself, of its request, and of its answer while that waits for a window. */
  get keptBytes(): number {
    return this.openBytes + this.#keptBytes + (this.#waiting?.bytes.heldBytes ?? 0);
  }

  /** Counts kept bytes of the request: the connection grants that many fewer. */
  keep(bytes: number): void {
    this.#keptBytes += bytes;
    this.#connection.memory.requests.take(bytes);
  }

  release(bytes: number): void {
    this.#keptBytes -= bytes;
    this.#connection.memory.requests.give(bytes);
    this.#connection.memory.grantWindow();
  }

  /** `counted` is the number of bytes that the frame takes from the window, padding included. */
  receiveData(bytes: Buffer, counted: number, isLast: boolean): void {
    if (this.#isRemoteEnded) {
      this.reset(ERROR.streamClosed);
      return;
    }
    this.#receiveWindow -= counted;
    if (this.#receiveWindow < 0) throw new ConnectionError(ERROR.flowControl, 'the window of a stream is exceeded');
    this.#isRemoteEnded = isLast;
    this.#connection.progress.count(bytes.length);
    if (!this.#isContentLengthKept(bytes.length)) {
      this.reset(ERROR.protocol);
      return;
    }
    if (!isLast && counted > bytes.length) this.grant(counted - bytes.length);
    this.listener?.onData(bytes, isLast);
    if (this.#isRemoteEnded && this.#isLocalEnded) this.#connection.forget(this);
  }

  /** Handles a second header section of the request: its end, or malformed (§8.1). */
  receiveTrailers({ isLast, isMalformed }: { readonly isLast: boolean; readonly isMalformed: boolean }): void {
    if (this.#isRemoteEnded) this.reset(ERROR.streamClosed);
    else if (!isLast || isMalformed) this.reset(ERROR.protocol);
    else this.receiveData(NOTHING, 0, true);
  }

  /** §8.1.1: the content must be as long as `content-length`. */
  #isContentLengthKept(bytes: number): boolean {
    if (this.#contentLeft === undefined) return true;
    this.#contentLeft -= bytes;
    return this.#isRemoteEnded ? this.#contentLeft === 0 : this.#contentLeft >= 0;
  }

  /** Lets the client send this many more bytes. Small grants are collected into one frame. */
  grant(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit >= STREAM_WINDOW / 4) this.#sendCredit();
  }

  grantNow(bytes: number): void {
    this.#credit += bytes;
    this.#sendCredit();
  }

  /** Sends the collected grants if the client could not send this many bytes without them. */
  ensureWindow(bytes: number): void {
    if (this.#receiveWindow < bytes) this.#sendCredit();
  }

  #sendCredit(): void {
    if (this.#credit <= 0 || this.#isRemoteEnded || this.#isReset) return;
    this.#receiveWindow += this.#credit;
    this.#connection.writer.windowUpdate(this.id, this.#credit);
    this.#credit = 0;
    this.#connection.flush();
  }

  sendHeaders(block: Buffer, isLast: boolean): void {
    if (this.#isReset || this.#isLocalEnded) return;
    const flags = FLAG.endHeaders | (isLast ? FLAG.endStream : 0);
    this.#connection.writer.headers(flags, this.id, block);
    if (isLast) this.#endLocal();
  }

  /** Sends two parts as one run of data. The bytes are copied before it returns. */
  sendData(head: Buffer, body: Uint8Array): void {
    if (this.#isReset || this.#isLocalEnded) return;
    const length = head.length + body.length;
    const fits = !this.isWaiting && length <= this.#sendWindow && length <= this.#connection.sendWindows.left;
    if (fits && length <= this.#connection.sendWindows.maxFrameBytes) {
      this.#useWindow(length);
      const { writer } = this.#connection;
      writer.head(length, FRAME.data, 0, this.id);
      writer.bytes(head, 0, head.length);
      writer.bytes(body, 0, body.length);
      this.#connection.controlFrames.countDataFrame();
      return;
    }
    if (!this.isWaiting) this.#connection.progress.mark();
    this.#waiting ??= new WaitingData(this.#connection.memory.blocks);
    this.#waiting.bytes.push(head);
    this.#waiting.bytes.push(body);
    this.sendMore();
  }

  /** Sends the end of the answer after all data. */
  sendTrailers(block: Buffer): void {
    if (this.#waiting === undefined || !this.isWaiting) this.sendHeaders(block, true);
    else this.#waiting.trailers = block;
  }

  /** Resolves when all data was sent, or was dropped. */
  whenSent(): Promise<void> {
    if (this.#waiting === undefined || !this.isWaiting || this.#isReset) return Promise.resolve();
    return this.#waiting.whenSent();
  }

  /** Sends as much of the waiting data as the windows allow. */
  sendMore(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#sendWaiting(waiting.bytes);
    if (!this.isWaiting) this.#finishSending(waiting);
    this.#countWaiting(waiting);
  }

  /** Drops the waiting data: the answer ends without it. */
  dropWaiting(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || !this.isWaiting) return;
    waiting.clear();
    this.#finishSending(waiting);
    this.#countWaiting(waiting);
  }

  #sendWaiting(waiting: ByteQueue): void {
    while (waiting.length > 0) {
      const { sendWindows, writer } = this.#connection;
      const length = Math.min(waiting.length, sendWindows.maxFrameBytes, this.#sendWindow, sendWindows.left);
      if (length <= 0) {
        if (sendWindows.left <= 0) sendWindows.wait(this);
        return;
      }
      this.#useWindow(length);
      writer.head(length, FRAME.data, 0, this.id);
      writer.bytes(waiting.peek(length), 0, length);
      waiting.drop(length);
      if (length >= MIN_DATA_BYTES) this.#connection.controlFrames.countDataFrame();
      this.#connection.progress.count(length);
    }
  }

  #finishSending(waiting: WaitingData): void {
    waiting.reportSent();
    if (waiting.trailers !== undefined) this.sendHeaders(waiting.trailers, true);
  }

  /** May end this call itself, if it is the largest and there is no room for it. */
  #countWaiting(waiting: WaitingData): void {
    this.#connection.memory.countWaiting(waiting.takeChange());
  }

  /** §6.9: a window update of 0 is an error of this stream alone. */
  receiveWindowUpdate(increment: number): void {
    if (increment === 0) this.reset(ERROR.protocol);
    else this.addSendWindow(increment);
  }

  addSendWindow(change: number): void {
    if (this.#sendWindow + change > MAX_WINDOW) {
      this.reset(ERROR.flowControl);
      return;
    }
    this.#sendWindow += change;
    if (this.isWaiting) this.sendMore();
  }

  /** §6.9.2: a change of the initial window made the window of a stream with window updates too large. */
  changeInitialWindow(change: number): void {
    if (this.#sendWindow + change > MAX_WINDOW)
      throw new ConnectionError(ERROR.flowControl, 'a window of a stream is too large');
    this.addSendWindow(change);
  }

  reset(code: number): void {
    if (this.#isReset) return;
    this.#connection.controlFrames.count();
    this.#connection.resetStream(this.id, code);
    this.#connection.flush();
    this.receiveReset();
  }

  receiveReset(): void {
    if (this.#isReset) return;
    this.#isReset = true;
    this.dropWaiting();
    this.#connection.forget(this);
    this.listener?.onReset();
  }

  #useWindow(bytes: number): void {
    this.#sendWindow -= bytes;
    this.#connection.sendWindows.use(bytes);
  }

  #endLocal(): void {
    this.#isLocalEnded = true;
    if (this.#waiting !== undefined) this.#waiting.trailers = undefined;
    if (this.#isRemoteEnded) {
      this.#connection.forget(this);
      return;
    }
    // §8.1: the request was answered early; the client need not send the rest.
    this.#connection.resetStream(this.id, ERROR.none);
    this.#isReset = true;
    this.#connection.forget(this);
  }
}
