import type { Http2Connection } from './connection.ts';
import { ConnectionError, ERROR, FLAG, FRAME, MAX_WINDOW, STREAM_WINDOW } from './frames.ts';

/** Who takes what arrives on a stream. */
export interface StreamListener {
  /** Bytes of the request, and whether they are the last. The bytes stay as they are. */
  onData(bytes: Buffer, isLast: boolean): void;
  /** The client left, or the connection is gone. */
  onReset(): void;
  /** The server ends and can wait no longer. */
  onCut(): void;
}

const NOTHING = Buffer.alloc(0);

/** One call on the wire: its windows, and what waits for them. */
export class Http2Stream {
  readonly id: number;
  readonly #connection: Http2Connection;
  listener: StreamListener | undefined;
  #sendWindow: number;
  #receiveWindow = STREAM_WINDOW;
  #credit = 0;
  #isRemoteEnded = false;
  /** Bytes that `content-length` promised and that did not come yet. */
  #contentLeft: number | undefined;
  #isLocalEnded = false;
  #isReset = false;
  /** Data that found a window closed, and the trailers after it. */
  #waiting: Buffer[] = [];
  #waitingTrailers: Buffer | undefined;
  #onSent: (() => void) | undefined;

  constructor(parts: {
    readonly connection: Http2Connection;
    readonly id: number;
    readonly sendWindow: number;
    readonly contentLength: number | undefined;
  }) {
    this.#connection = parts.connection;
    this.id = parts.id;
    this.#sendWindow = parts.sendWindow;
    this.#contentLeft = parts.contentLength;
  }

  get connection(): Http2Connection {
    return this.#connection;
  }

  get isReset(): boolean {
    return this.#isReset;
  }

  /** `counted` is what the frame takes of the window. */
  receiveData(bytes: Buffer, counted: number, isLast: boolean): void {
    if (this.#isRemoteEnded) {
      this.reset(ERROR.streamClosed);
      return;
    }
    this.#receiveWindow -= counted;
    if (this.#receiveWindow < 0) throw new ConnectionError(ERROR.flowControl, 'the window of a stream is exceeded');
    this.#isRemoteEnded = isLast;
    if (!this.#isContentLengthKept(bytes.length)) {
      this.reset(ERROR.protocol);
      return;
    }
    if (!isLast && counted > bytes.length) this.grant(counted - bytes.length);
    this.listener?.onData(bytes, isLast);
    if (this.#isRemoteEnded && this.#isLocalEnded) this.#connection.forget(this);
  }

  /** A second header section of the request: its end, or malformed (§8.1). */
  receiveTrailers({ isLast, isMalformed }: { readonly isLast: boolean; readonly isMalformed: boolean }): void {
    if (this.#isRemoteEnded) this.reset(ERROR.streamClosed);
    else if (!isLast || isMalformed) this.reset(ERROR.protocol);
    else this.receiveData(NOTHING, 0, true);
  }

  /** §8.1.1: the content is as long as the head said. */
  #isContentLengthKept(bytes: number): boolean {
    if (this.#contentLeft === undefined) return true;
    this.#contentLeft -= bytes;
    return this.#isRemoteEnded ? this.#contentLeft === 0 : this.#contentLeft >= 0;
  }

  /** Lets the client send so many bytes again. Small grants are collected. */
  grant(bytes: number): void {
    this.#credit += bytes;
    if (this.#isRemoteEnded || this.#isReset || this.#credit < STREAM_WINDOW / 4) return;
    this.#receiveWindow += this.#credit;
    this.#connection.writer.windowUpdate(this.id, this.#credit);
    this.#connection.flush();
    this.#credit = 0;
  }

  sendHeaders(block: Buffer, isLast: boolean): void {
    if (this.#isReset || this.#isLocalEnded) return;
    const flags = FLAG.endHeaders | (isLast ? FLAG.endStream : 0);
    this.#connection.writer.frame(FRAME.headers, flags, this.id, block);
    if (isLast) this.#endLocal();
  }

  /** Sends two parts as one run of data. The bytes are copied, at once. */
  sendData(head: Buffer, body: Uint8Array): void {
    if (this.#isReset || this.#isLocalEnded) return;
    const length = head.length + body.length;
    const fits = this.#waiting.length === 0 && length <= this.#sendWindow && length <= this.#connection.sendWindow;
    if (fits && length <= this.#connection.peerMaxFrameBytes) {
      this.#useWindow(length);
      const { writer } = this.#connection;
      writer.head(length, FRAME.data, 0, this.id);
      writer.bytes(head, 0, head.length);
      writer.bytes(body, 0, body.length);
      return;
    }
    this.#waiting.push(Buffer.concat([head, body]));
    this.sendMore();
  }

  /** The end of the answer, after all data. */
  sendTrailers(block: Buffer): void {
    if (this.#waiting.length === 0) this.sendHeaders(block, true);
    else this.#waitingTrailers = block;
  }

  /** Resolves when all data is on its way, or never will be. */
  whenSent(): Promise<void> {
    if (this.#waiting.length === 0 || this.#isReset) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onSent = resolve;
    return promise;
  }

  /** As much of what waits as the windows allow. */
  sendMore(): void {
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting;
      const { peerMaxFrameBytes, sendWindow, writer } = this.#connection;
      const length = Math.min(first!.length, peerMaxFrameBytes, this.#sendWindow, sendWindow);
      if (length <= 0) {
        if (sendWindow <= 0) this.#connection.waitForWindow(this);
        return;
      }
      this.#useWindow(length);
      writer.head(length, FRAME.data, 0, this.id);
      writer.bytes(first!, 0, length);
      if (length === first!.length) this.#waiting.shift();
      else this.#waiting[0] = first!.subarray(length);
    }
    this.#onSent?.();
    this.#onSent = undefined;
    if (this.#waitingTrailers !== undefined) this.sendHeaders(this.#waitingTrailers, true);
  }

  /** §6.9: a window that the client grows by nothing is an error of this stream alone. */
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
    if (this.#waiting.length > 0) this.sendMore();
  }

  /** §6.9.2: the client changed the initial window, which is too large for a stream with window updates. */
  changeInitialWindow(change: number): void {
    if (this.#sendWindow + change > MAX_WINDOW)
      throw new ConnectionError(ERROR.flowControl, 'a window of a stream is too large');
    this.addSendWindow(change);
  }

  reset(code: number): void {
    if (this.#isReset) return;
    this.#connection.resetStream(this.id, code);
    this.#connection.flush();
    this.receiveReset();
  }

  receiveReset(): void {
    if (this.#isReset) return;
    this.#isReset = true;
    this.#waiting = [];
    this.#onSent?.();
    this.#connection.forget(this);
    this.listener?.onReset();
  }

  #useWindow(bytes: number): void {
    this.#sendWindow -= bytes;
    this.#connection.useSendWindow(bytes);
  }

  #endLocal(): void {
    this.#isLocalEnded = true;
    this.#waitingTrailers = undefined;
    if (this.#isRemoteEnded) {
      this.#connection.forget(this);
      return;
    }
    // §8.1: answered early; the client need not send the rest.
    this.#connection.resetStream(this.id, ERROR.none);
    this.#isReset = true;
    this.#connection.forget(this);
  }
}
