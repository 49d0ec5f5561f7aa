/**
 * Runs one HTTP/2 connection of the server: reads its frames, opens its streams, flushes its answers (RFC 9113). It has what
 * gRPC needs: no push, no priorities, no use of trailers from the client. Frames are read in place; the frames that they cause
 * are sent in one write when the read is used up.
 *
 * Its parts: handling of frames (`incoming-frames.ts`), open streams (`stream-table.ts`), limits of sending (`send-windows.ts`)
 * and of memory (`connection-memory.ts`), the last progress of calls (`progress.ts`), and the end (`drain.ts`,
 * `../budget/closing.ts`).
 */
import type { Socket } from 'node:net';
import type { NetworkUse } from '../../connections/network-use.ts';
import { endHalfOpenLater, endSocket, endSocketAfterFault, endSocketInTime, endSocketSoon } from '../budget/closing.ts';
import { ReadQueue } from '../budget/read-queue.ts';
import { Share } from '../budget/turns.ts';
import { FrameReader } from '../frames/frame-reader.ts';
import { FrameWriter } from '../frames/frame-writer.ts';
import { ConnectionError, ERROR, FRAME } from '../frames/frames.ts';
import { HpackError } from '../hpack/hpack-decoder.ts';
import { ConnectionMemory } from './connection-memory.ts';
import type { ConnectionOptions } from './connection-options.ts';
import { ControlFrameLimit } from './control-frame-limit.ts';
import { Drain } from './drain.ts';
import { GREETING } from './greeting.ts';
import { IncomingFrames, type NewStream } from './incoming-frames.ts';
import { Keepalive } from './keepalive.ts';
import { Progress } from './progress.ts';
import { SendWindows } from './send-windows.ts';
import { Http2Stream } from './stream.ts';
import type { CutReason } from './stream-listener.ts';
import { StreamTable } from './stream-table.ts';

/** How long a client may take to begin before its connection is closed. */
const PREFACE_MS = 10_000;
/** More bytes of answers than this are handed to the socket before the next answer is made. */
const MAX_UNFLUSHED_BYTES = 65_536;
const PING_OF_KEEPALIVE = Buffer.from('areyouon');

export class Http2Connection {
  readonly socket: Socket;
  readonly share: Share;
  readonly writer: FrameWriter;
  readonly memory: ConnectionMemory;
  readonly sendWindows = new SendWindows();
  readonly controlFrames: ControlFrameLimit;
  readonly progress: Progress;
  readonly #options: ConnectionOptions;
  readonly #streams = new StreamTable();
  readonly #reader = new FrameReader();
  readonly #reads: ReadQueue;
  readonly #keepalive: Keepalive;
  readonly #prefaceTimer: NodeJS.Timeout;
  readonly #drain: Drain;
  #willFlush = false;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.socket = socket;
    this.#options = options;
    this.writer = new FrameWriter(options.bufferPool);
    this.controlFrames = new ControlFrameLimit(options.monotonicMs);
    this.progress = new Progress(socket, options.monotonicMs);
    this.share = new Share(options.turns, () => this.#reads.readOn());
    this.memory = this.#createMemory();
    this.#drain = this.#createDrain();
    this.#reads = this.#createReads();
    this.#keepalive = new Keepalive(
      () => this.#ping(PING_OF_KEEPALIVE),
      () => this.close(),
    );
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    // A client may end its side and still read the answers to its requests.
    socket.allowHalfOpen = true;
    socket.on('end', () => endHalfOpenLater(socket));
    socket.on('drain', () => this.progress.mark());
    socket.on('close', () => this.#onClosed());
    this.#prefaceTimer = setTimeout(() => this.close(), PREFACE_MS).unref();
    socket.write(GREETING);
  }

  #createMemory(): ConnectionMemory {
    const { memory: budget, largeMessages, network } = this.#options;
    return new ConnectionMemory({
      budget,
      largeMessages,
      network,
      share: this.share,
      shed: () => this.#streams.shedLargest(),
      close: () => this.close(),
      shedUnfinished: () => this.#streams.shedUnfinished(),
      grant: (bytes) => {
        this.writer.windowUpdate(0, bytes);
        this.flush();
      },
    });
  }

  #createReads(): ReadQueue {
    const frames = this.#createFrames();
    return new ReadQueue({
      socket: this.socket,
      share: this.share,
      countGarbage: this.#options.countGarbage,
      use: (chunk) => this.#reader.read(chunk, frames.read),
      onPause: () => this.#endRead(),
      onFault: (error) => this.#fail(error),
      onEnd: () => this.#receiveEnd(),
    });
  }

  #createFrames(): IncomingFrames {
    const { share, sendWindows, writer, controlFrames, memory } = this;
    return new IncomingFrames({
      share,
      streams: this.#streams,
      receiveWindow: memory.receiveWindow,
      sendWindows,
      writer,
      controlFrames,
      grantWindow: () => memory.grantWindow(),
      countHeaderBlock: (bytes) => memory.countHeaderBlock(bytes),
      openStream: (stream) => this.#openStream(stream),
      onSettings: () => clearTimeout(this.#prefaceTimer),
      onPingAnswer: (payload) => this.#readPingAnswer(payload),
      onGoAway: () => this.#drain.receiveGoAway(),
    });
  }

  #createDrain(): Drain {
    return new Drain({
      socket: this.socket,
      writer: this.writer,
      streams: this.#streams,
      sendPing: (payload) => this.#ping(payload),
      flush: () => this.flush(),
      endSoon: () => this.#endSoon(),
    });
  }

  get network(): NetworkUse {
    return this.memory.network;
  }

  get changedMs(): number {
    return this.progress.changedMs;
  }

  get isIdle(): boolean {
    return this.#streams.size === 0 && this.socket.writableLength === 0;
  }

  /** Whether all calls and answers wait for the client. */
  get waitsForClient(): boolean {
    if (this.socket.writableNeedDrain) return true;
    return !this.#reads.hasUnused && this.#streams.waitForClient;
  }

  noteProgress(): void {
    this.progress.countTaken();
  }

  /** Resolves when the client takes the sent bytes, or is gone. */
  whenWritable(): Promise<void> | undefined {
    if (this.writer.length > MAX_UNFLUSHED_BYTES) this.flush();
    return this.#reads.whenWritable();
  }

  /** Must be called when bytes of the current read are kept for longer than its handling takes. */
  keepRead(): void {
    this.#reads.keepRead();
  }

  /** Sends the written frames, unless a read is being used: then they are sent at its end. */
  flush(): void {
    this.#willFlush = false;
    if (this.#reads.isUsing || this.writer.length === 0 || !this.socket.writable) return;
    // While a client does not read its answers, the server does not read its requests, or answers would fill the memory.
    if (!this.writer.sendTo(this.socket, this.#onSent)) {
      this.socket.pause();
      this.progress.mark();
    }
    this.#countUnsent();
    if (this.#drain.isEnding && this.#streams.size === 0) this.#end();
  }

  readonly #onSent = (): void => {
    if (this.socket.writableNeedDrain) this.progress.mark();
    this.#countUnsent();
  };

  readonly #countUnsent = (): void => this.memory.countUnsent(this.socket);

  /** Does the same at the end of this event loop turn, so that answers of many streams are sent in one write. */
  flushSoon(): void {
    if (this.#willFlush) return;
    this.#willFlush = true;
    process.nextTick(() => this.flush());
  }

  resetStream(streamId: number, code: number): void {
    this.writer.resetStream(streamId, code);
    this.#streams.closed.addReset(streamId);
  }

  /** Called when the stream is closed on both sides. */
  forget(stream: Http2Stream): void {
    if (!this.#streams.delete(stream)) return;
    this.memory.endCall(stream);
    if (this.#reads.isUsing) this.progress.markLater();
    else this.progress.mark();
    this.sendWindows.forget(stream);
    if (this.#drain.isEnding && this.#streams.size === 0) this.#endSoon();
  }

  /** Asks the client for no more calls; the connection ends with its last one. */
  drain(): void {
    this.#drain.begin(this.#reader.hasPreface);
  }

  /** Stops waiting: running calls fail, and their callers get the reason before the connection ends. */
  async cut(reason: CutReason, end = endSocketSoon): Promise<void> {
    await this.#streams.endAll(this.share, (stream) => stream.listener?.onCut(reason));
    end(this.socket);
  }

  /** Ends the connection because another client needs its place. Its client may retry calls after the last one that GOAWAY names. */
  evict(): void {
    this.writer.goAway(this.#streams.closed.lastId, ERROR.none);
    this.flush();
    this.#reads.stop();
    this.#options.onEvicted();
    void this.cut('another client takes the place of the connection', endSocketInTime);
  }

  close(): void {
    this.socket.destroy();
  }

  #openStream({ id, headers, contentLength }: NewStream): Http2Stream {
    this.#keepalive.hearCall();
    const sendWindow = this.sendWindows.ofNewStreams;
    const stream = new Http2Stream({ connection: this, id, sendWindow, contentLength });
    this.#streams.add(stream);
    this.progress.markLater();
    this.#options.onRequest(stream, headers);
    return stream;
  }

  /** Running calls are answered. Calls that wait for their client end, or they would wait for ever. */
  #receiveEnd(): void {
    this.#drain.receiveGoAway();
    if (this.#streams.size === 0) this.#endSoon();
    else void this.#streams.endAll(this.share, (stream) => needsClient(stream) && stream.receiveReset());
  }

  #endSoon(): void {
    this.flush();
    if (!this.#reads.isUsing && !this.socket.destroyed) this.#end();
  }

  /** Takes no more calls: their answers would stay in memory, since nothing more is sent. */
  #end(): void {
    if (this.socket.writableEnded) return;
    this.#reads.stop();
    endSocket(this.socket);
  }

  #endRead(): void {
    this.#streams.endRead(this.#keepOpen);
    this.progress.endRead();
    this.flush();
    if (this.#drain.isEnding && this.#streams.size === 0) this.#endSoon();
  }

  readonly #keepOpen = (stream: Http2Stream): void => {
    const { listener } = stream;
    this.memory.openCall(stream, listener?.ownBytes ?? 0);
    listener?.onReadEnd();
  };

  #readPingAnswer(payload: Buffer): void {
    this.#keepalive.hearAnswer();
    this.#drain.receivePingAnswer(payload);
  }

  /** Reports an error that ends the connection, and ends it. */
  #fail(error: unknown): void {
    const { socket } = this;
    this.#reads.stop();
    this.writer.goAway(this.#streams.closed.lastId, this.#toErrorCode(error));
    if (!socket.destroyed) {
      this.writer.sendTo(socket, this.#countUnsent);
      socket.end();
    }
    this.#dropStreams();
    endSocketAfterFault(socket);
  }

  #toErrorCode(error: unknown): number {
    if (error instanceof ConnectionError) return error.code;
    if (error instanceof HpackError) return ERROR.compression;
    this.#options.onFault(error);
    return ERROR.internal;
  }

  #ping(payload: Buffer): void {
    this.writer.frame(FRAME.ping, 0, 0, payload);
    this.flush();
  }

  #onClosed(): void {
    this.#keepalive.stop();
    this.#reads.stop();
    clearTimeout(this.#prefaceTimer);
    this.#drain.stop();
    this.#dropStreams();
    this.#countUnsent();
    this.memory.countHeaderBlock(0);
    this.#options.onClosed();
  }

  #dropStreams(): void {
    this.sendWindows.clear();
    void this.#streams.endAll(this.share, (stream) => stream.receiveReset());
  }
}

/** Whether the client must send or read something, even if its window is closed for now. */
function needsClient({ waitsForClient, listener }: Http2Stream): boolean {
  return waitsForClient || listener?.isUnfinished === true;
}
