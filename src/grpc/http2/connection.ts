/**
 * One HTTP/2 connection of the server, RFC 9113, as far as gRPC needs it: no push, no priorities, no trailers from the
 * client beyond their end. Frames are read in place; what they cause goes out in one write when the read is used up.
 */
import type { Socket } from 'node:net';
import { CallQueue } from '../budget/call-queue.ts';
import type { LargeMessages, Room, RoomRequest } from '../budget/large-messages.ts';
import type { MemoryAccount, MemoryBudget } from '../budget/memory-budget.ts';
import type { NetworkUse } from '../budget/network-use.ts';
import { ReadQueue } from '../budget/read-queue.ts';
import { COST, costOfBytes, Share, type Turns } from '../budget/turns.ts';
import type { WriteMemory } from '../budget/write-memory.ts';
import { ClosedStreams } from './closed-streams.ts';
import { ControlFrameLimit } from './control-frame-limit.ts';
import type { Field } from './fields.ts';
import {
  checkGoAway,
  checkPing,
  checkPriority,
  checkReset,
  readSettings,
  readWindowIncrement,
  type Setting,
  withoutPadding,
} from './frame-payloads.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import {
  ConnectionError,
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW,
  ERROR,
  FLAG,
  FRAME,
  MAX_WINDOW,
  SETTING,
  STREAM_WINDOW,
} from './frames.ts';
import { HeaderAssembler, type HeaderBlock, MAX_HEADER_BLOCK_BYTES } from './header-assembler.ts';
import { HpackDecoder, HpackError } from './hpack-decoder.ts';
import { Keepalive } from './keepalive.ts';
import { CONNECTION_WINDOW, ReceiveWindow } from './receive-window.ts';
import { areTrailersMalformed, type Headers, RequestHeadReader } from './request-head.ts';
import { Http2Stream } from './stream.ts';

export interface ConnectionOptions {
  readonly monotonicMs: () => number;
  readonly writeMemory: WriteMemory;
  readonly turns: Turns;
  readonly memory: MemoryBudget;
  readonly network: NetworkUse;
  readonly largeMessages: LargeMessages;
  /** A request whose head is complete; its data follows through `stream.onData`. */
  readonly onRequest: (stream: Http2Stream, headers: Headers) => void;
  /** Something threw that should not have: the connection ends, the program goes on. */
  readonly onFault: (error: unknown) => void;
  readonly onClosed: (connection: Http2Connection) => void;
}

/** The share of the budget that the requests of one connection may take. */
const MAX_REQUEST_SHARE = 0.25;
const MAX_STREAMS = 1024;
/** What a call that waits for anything takes besides its bytes. */
const OPEN_CALL_BYTES = 2048;
/** A client that has not begun by then is not waited for. */
const PREFACE_MS = 10_000;
/** How long our last words may take: then the connection is gone, whoever did not read them. */
const LINGER_MS = 500;
/** For the client to read the last answers and close its side. */
const END_MS = 5000;
/** A client that goes on sending meanwhile does not want to hear them. */
const DISCARD_BYTES = 1_048_576;
/** A client that does not answer the ping of a drain is not waited for. */
const DRAIN_PING_MS = 1000;
const PING_OF_DRAIN = Buffer.from('drainnow');
const PING_OF_KEEPALIVE = Buffer.from('areyouon');

export class Http2Connection {
  readonly socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #writer: FrameWriter;
  readonly #hpack = new HpackDecoder();
  readonly #heads = new RequestHeadReader();
  readonly #streams = new Map<number, Http2Stream>();
  /** Streams with bytes that found a window closed, in the order in which they wait. */
  readonly #blocked = new Set<Http2Stream>();
  readonly #reader = new FrameReader();
  readonly share: Share;
  readonly #reads: ReadQueue;
  /** Requests that were not used yet. */
  readonly requests: MemoryAccount;
  /** Answers that wait for a window. */
  readonly #answers: MemoryAccount;
  /** Requests that a method works on. */
  readonly running: MemoryAccount;
  /** Calls that outlive the read that they came with. */
  readonly #openCalls: MemoryAccount;
  readonly callQueue: CallQueue;
  /** For messages that are larger than the first window of their stream. */
  reservedBytes = 0;
  /** Calls that came with this read. */
  #newStreams: Http2Stream[] = [];
  readonly #headers = new HeaderAssembler();
  readonly #closed = new ClosedStreams();
  #hasSettings = false;
  /** Streams above this are refused; rises no more once the peer knows it. */
  #maxStreamId = MAX_WINDOW;
  #peerInitialWindow = DEFAULT_WINDOW;
  #peerMaxFrameBytes = DEFAULT_MAX_FRAME_BYTES;
  #sendWindow = DEFAULT_WINDOW;
  readonly #receiveWindow = new ReceiveWindow();
  readonly controlFrames: ControlFrameLimit;
  #isEnding = false;
  readonly #keepalive: Keepalive;
  #prefaceTimer: NodeJS.Timeout | undefined;
  #idleSinceMs: number;
  #drainTimer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.socket = socket;
    this.#options = options;
    this.#writer = new FrameWriter(options.writeMemory);
    this.controlFrames = new ControlFrameLimit(options.monotonicMs);
    this.#idleSinceMs = options.monotonicMs();
    this.share = new Share(options.turns, () => this.#reads.readOn());
    this.#reads = new ReadQueue({
      socket,
      share: this.share,
      use: (chunk) => this.#reader.read(chunk, this.#readFrame),
      onPause: () => this.#endRead(),
      onFault: (error) => this.#fail(error),
    });
    const owner = { network: options.network, shed: () => shedLargest(this.#streams.values()) };
    this.requests = options.memory.createAccount(owner);
    this.#answers = options.memory.createAccount(owner);
    this.running = options.memory.createAccount();
    this.#openCalls = options.memory.createAccount(owner);
    const readBytes = (): number => this.#answers.bytes + this.running.bytes;
    this.callQueue = new CallQueue({ readBytes, share: this.share });
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('end', () => this.close());
    socket.on('close', () => this.#onClosed());
    this.#keepalive = new Keepalive(
      () => this.#ping(PING_OF_KEEPALIVE),
      () => this.close(),
    );
    this.#prefaceTimer = setTimeout(() => this.close(), PREFACE_MS).unref();
    this.#sendSettings();
  }

  get network(): NetworkUse {
    return this.#options.network;
  }

  get writer(): FrameWriter {
    return this.#writer;
  }

  get peerMaxFrameBytes(): number {
    return this.#peerMaxFrameBytes;
  }

  get sendWindow(): number {
    return this.#sendWindow;
  }

  useSendWindow(bytes: number): void {
    this.#sendWindow -= bytes;
  }

  /** Puts what was written on its way, unless a read is being used up: then it goes out at its end. */
  flush(): void {
    if (this.#reads.isUsing || this.#writer.length === 0 || !this.socket.writable) return;
    // A client that does not read its answers is not read either, or they would fill the memory.
    if (!this.#writer.sendTo(this.socket)) this.socket.pause();
    if (this.#isEnding && this.#streams.size === 0) this.#end();
  }

  waitForWindow(stream: Http2Stream): void {
    this.#blocked.add(stream);
  }

  resetStream(streamId: number, code: number): void {
    this.#writer.resetStream(streamId, code);
    this.#closed.addReset(streamId);
  }

  /** The stream is over on both sides. */
  forget(stream: Http2Stream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#openCalls.give(stream.openBytes);
    if (!this.#reads.isUsing) this.#noteIdle();
    this.#blocked.delete(stream);
    if (this.#isEnding && this.#streams.size === 0) this.#endSoon();
  }

  /** Asks the client for no more calls; the connection ends with its last one. */
  drain(): void {
    if (this.#isEnding || this.socket.destroyed) return;
    if (!this.#reader.hasPreface) {
      this.#finishDrain();
      return;
    }
    // Calls may be on their way: they are taken until the ping is back, by when the client knows.
    this.#writer.goAway(MAX_WINDOW, ERROR.none);
    this.#ping(PING_OF_DRAIN);
    this.#drainTimer = setTimeout(() => this.#finishDrain(), DRAIN_PING_MS).unref();
  }

  /** Waits no longer: the calls under way fail, and their callers are told before the connection ends. */
  cut(): void {
    for (const stream of this.#streams.values()) stream.listener?.onCut();
    this.socket.destroySoon();
    setTimeout(() => this.socket.destroy(), LINGER_MS).unref();
  }

  close(): void {
    this.socket.destroy();
  }

  #endSoon(): void {
    this.flush();
    if (!this.#reads.isUsing && !this.socket.destroyed) this.#end();
  }

  /** A client that does not close its side is not waited for. */
  #end(): void {
    if (this.socket.writableEnded) return;
    this.socket.end(() => setTimeout(() => this.socket.destroy(), END_MS).unref());
  }

  #endRead(): void {
    if (this.#newStreams.length > 0) this.#endNewStreams();
    this.flush();
    if (this.#isEnding && this.#streams.size === 0) this.#endSoon();
  }

  #endNewStreams(): void {
    const streams = this.#newStreams;
    this.#newStreams = [];
    if (this.#streams.size > 0) for (const stream of streams) if (this.#streams.has(stream.id)) this.#keepOpen(stream);
    this.#noteIdle();
  }

  #keepOpen(stream: Http2Stream): void {
    stream.openBytes = OPEN_CALL_BYTES;
    this.#openCalls.take(OPEN_CALL_BYTES);
    stream.listener?.onReadEnd();
  }

  #noteIdle(): void {
    if (this.#streams.size === 0) this.#idleSinceMs = this.#options.monotonicMs();
  }

  /** Returns whether the next one may be read in this turn. */
  readonly #readFrame = (frame: Frame): boolean => {
    this.share.spend(COST.frame + costOfBytes(frame.payload.length));
    this.#handleFrame(frame);
    return !this.share.isSpent;
  };

  #handleFrame({ type, flags, streamId, payload }: Frame): void {
    if (!this.#hasSettings) this.#checkFirst(type, flags);
    const { openStreamId } = this.#headers;
    if (openStreamId !== undefined && (type !== FRAME.continuation || streamId !== openStreamId))
      throw new ConnectionError(ERROR.protocol, 'a header block is interrupted');
    switch (type) {
      case FRAME.data:
        this.#readData(flags, streamId, payload);
        break;
      case FRAME.headers:
        this.#readHeaderBlock(this.#headers.begin(streamId, flags, withoutPadding(flags, payload)));
        break;
      case FRAME.continuation:
        this.#readHeaderBlock(this.#headers.continue(flags, payload));
        break;
      case FRAME.resetStream:
        this.#readReset(streamId, payload);
        break;
      case FRAME.settings:
        this.#readSettings(flags, streamId, payload);
        break;
      case FRAME.ping:
        this.#readPing(flags, streamId, payload);
        break;
      case FRAME.windowUpdate:
        this.#readWindowUpdate(streamId, payload);
        break;
      case FRAME.goAway:
        this.#readGoAway(streamId, payload);
        break;
      case FRAME.priority:
        checkPriority(streamId, payload);
        this.controlFrames.count();
        break;
      case FRAME.pushPromise:
        throw new ConnectionError(ERROR.protocol, 'a client must not push');
      default:
        // §4.1: frames of unknown types are passed over.
        this.controlFrames.count();
    }
  }

  /** §3.4: the preface of a client ends with its settings. */
  #checkFirst(type: number, flags: number): void {
    if (type !== FRAME.settings || (flags & FLAG.ack) !== 0)
      throw new ConnectionError(ERROR.protocol, 'a connection begins with settings');
    this.#hasSettings = true;
  }

  #readData(flags: number, streamId: number, payload: Buffer): void {
    // §6.1: the whole payload counts, padding too, whatever became of the stream.
    this.#receiveWindow.use(payload.length);
    const bytes = withoutPadding(flags, payload);
    const isLast = (flags & FLAG.endStream) !== 0;
    if (bytes.length === 0 && !isLast) this.controlFrames.count();
    const stream = this.#streams.get(streamId);
    if (stream === undefined) this.#dropData(streamId, isLast);
    else stream.receiveData(bytes, payload.length, isLast);
    if (this.#receiveWindow.isLow) this.grantWindow();
  }

  /** Lets the client send more when it may: after bytes were used. */
  grantWindow(): void {
    const { requests, reservedBytes } = this;
    const maxBytes = MAX_REQUEST_SHARE * this.#options.memory.maxBytes;
    const kept = { bytes: requests.bytes, maxBytes, reservedBytes };
    const credit = this.#receiveWindow.takeCredit(kept);
    if (credit > 0) {
      this.#writer.windowUpdate(0, credit);
      this.flush();
    }
    if (this.#receiveWindow.isShut(kept)) this.#shedUnfinished();
  }

  reserveRoom(request: Omit<RoomRequest, 'owner'>): Room {
    return this.#options.largeMessages.reserve({
      ...request,
      owner: this,
      onGranted: () => {
        request.onGranted();
        this.grantWindow();
      },
    });
  }

  /** The answers that wait for a window have become more, or less. */
  countWaiting(change: number): void {
    if (change > 0) this.#answers.take(change);
    if (change >= 0) return;
    this.#answers.give(-change);
    this.callQueue.resume();
  }

  /** Resolves when the client takes what is sent, or is gone. */
  whenWritable(): Promise<void> | undefined {
    return this.#reads.whenWritable();
  }

  /** Since when there is no call; undefined while there is one. */
  get idleSinceMs(): number | undefined {
    return this.#streams.size > 0 ? undefined : this.#idleSinceMs;
  }

  /** Another client needs the place of this one. Clients may send calls again that come after the last one. */
  evict(): void {
    this.#writer.goAway(this.#closed.lastId, ERROR.none);
    this.flush();
    this.#reads.stop();
    this.cut();
  }

  /** All memory of this connection is taken by requests of which no one is complete. */
  #shedUnfinished(): void {
    shedLargest([...this.#streams.values()].filter((stream) => stream.listener?.isUnfinished));
  }

  /** §6.1: data on a stream that is over. */
  #dropData(streamId: number, isLast: boolean): void {
    this.#checkNotIdle(streamId);
    if (!this.#closed.mayReceive(streamId)) this.#refuseFrame(streamId);
    if (isLast) this.#closed.endByClient(streamId);
  }

  #refuseFrame(streamId: number): void {
    this.controlFrames.count();
    this.#writer.resetStream(streamId, ERROR.streamClosed);
  }

  #readHeaderBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return;
    const { streamId, endsStream } = block;
    // Every block must be decoded, even of a stream that is refused: the blocks after it depend on it.
    const fields = this.#hpack.decode(block.bytes);
    const known = this.#streams.get(streamId);
    if (known !== undefined) known.receiveTrailers({ isLast: endsStream, isMalformed: areTrailersMalformed(fields) });
    else if (this.#closed.isIdle(streamId)) this.#openStream(streamId, endsStream, fields);
    else {
      this.#closed.checkHeaders(streamId);
      if (endsStream) this.#closed.endByClient(streamId);
    }
  }

  #openStream(streamId: number, endsStream: boolean, fields: readonly Field[]): void {
    this.#closed.open(streamId);
    const { headers, contentLength, isMalformed } = this.#heads.read(fields);
    if (isMalformed || (endsStream && contentLength !== undefined && contentLength > 0)) {
      this.controlFrames.count();
      this.resetStream(streamId, ERROR.protocol);
      return;
    }
    if (streamId > this.#maxStreamId || this.#streams.size >= MAX_STREAMS) {
      this.controlFrames.count();
      this.resetStream(streamId, ERROR.refusedStream);
      return;
    }
    this.#keepalive.hearCall();
    this.share.spend(COST.call);
    const sendWindow = this.#peerInitialWindow;
    const stream = new Http2Stream({ connection: this, id: streamId, sendWindow, contentLength });
    this.#streams.set(streamId, stream);
    this.#newStreams.push(stream);
    this.#options.onRequest(stream, headers);
    if (endsStream) stream.receiveData(NOTHING, 0, true);
  }

  #readReset(streamId: number, payload: Buffer): void {
    checkReset(payload);
    this.#checkNotIdle(streamId);
    this.controlFrames.count();
    this.#closed.endByClient(streamId);
    this.#streams.get(streamId)?.receiveReset();
  }

  #readSettings(flags: number, streamId: number, payload: Buffer): void {
    const settings = readSettings(flags, streamId, payload);
    this.controlFrames.count(1 + (settings?.length ?? 0));
    if (this.#prefaceTimer !== undefined) this.#stopPrefaceTimer();
    if (settings === undefined) return;
    // Of entries that set the same, the last counts (§6.5.3): a change of the window walks over all streams.
    for (const setting of new Map(settings)) this.#applySetting(setting);
    this.#writer.frame(FRAME.settings, FLAG.ack, 0);
    this.#sendBlocked();
  }

  #stopPrefaceTimer(): void {
    clearTimeout(this.#prefaceTimer);
    this.#prefaceTimer = undefined;
  }

  #applySetting([setting, value]: Setting): void {
    if (setting === SETTING.initialWindowSize) {
      const change = value - this.#peerInitialWindow;
      this.#peerInitialWindow = value;
      this.share.spend(this.#streams.size * COST.frame);
      for (const stream of this.#streams.values()) stream.changeInitialWindow(change);
    } else if (setting === SETTING.maxFrameSize) {
      this.#peerMaxFrameBytes = Math.min(value, 4 * DEFAULT_MAX_FRAME_BYTES);
    }
  }

  #readPing(flags: number, streamId: number, payload: Buffer): void {
    checkPing(streamId, payload);
    if ((flags & FLAG.ack) === 0) {
      this.controlFrames.countReaction();
      this.#writer.frame(FRAME.ping, FLAG.ack, 0, payload);
      return;
    }
    this.controlFrames.count();
    this.#keepalive.hearAnswer();
    if (payload.equals(PING_OF_DRAIN)) this.#finishDrain();
  }

  /** The client has seen that we go: what it opened until now is answered, and nothing after. */
  #finishDrain(): void {
    clearTimeout(this.#drainTimer);
    if (this.#isEnding || this.socket.destroyed) return;
    this.#maxStreamId = this.#closed.lastId;
    this.#writer.goAway(this.#closed.lastId, ERROR.none);
    this.#isEnding = true;
    if (this.#streams.size === 0) this.#endSoon();
    else this.flush();
  }

  #readWindowUpdate(streamId: number, payload: Buffer): void {
    const increment = readWindowIncrement(payload);
    this.controlFrames.countReaction();
    if (streamId === 0) {
      if (increment === 0) throw new ConnectionError(ERROR.protocol, 'a window grows by 0');
      this.#sendWindow += increment;
      if (this.#sendWindow > MAX_WINDOW) throw new ConnectionError(ERROR.flowControl, 'a window is too large');
    } else {
      this.#checkNotIdle(streamId);
      this.#streams.get(streamId)?.receiveWindowUpdate(increment);
    }
    this.#sendBlocked();
  }

  #readGoAway(streamId: number, payload: Buffer): void {
    checkGoAway(streamId, payload);
    this.#isEnding = true;
  }

  #sendBlocked(): void {
    for (const stream of this.#blocked) {
      this.#blocked.delete(stream);
      stream.sendMore();
      if (this.#sendWindow <= 0) return;
    }
  }

  #checkNotIdle(streamId: number): void {
    if (this.#closed.isIdle(streamId))
      throw new ConnectionError(ERROR.protocol, 'a frame belongs to a stream that was not opened');
  }

  /**
   * A read that can not go on: says why, and ends. What still comes is thrown away for a moment: closing on bytes that
   * nobody read resets the connection (RFC 1122 §4.2.2.13), and could take our last words from the client.
   */
  #fail(error: unknown): void {
    const { socket } = this;
    this.#reads.stop();
    this.#writer.goAway(this.#closed.lastId, this.#toErrorCode(error));
    if (!socket.destroyed) {
      this.#writer.sendTo(socket);
      socket.end();
    }
    this.#dropStreams();
    let discardable = DISCARD_BYTES;
    socket.on('data', (chunk: Buffer) => {
      discardable -= chunk.length;
      if (discardable < 0) socket.destroy();
    });
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  #toErrorCode(error: unknown): number {
    if (error instanceof ConnectionError) return error.code;
    if (error instanceof HpackError) return ERROR.compression;
    this.#options.onFault(error);
    return ERROR.internal;
  }

  #ping(payload: Buffer): void {
    this.#writer.frame(FRAME.ping, 0, 0, payload);
    this.flush();
  }

  #onClosed(): void {
    this.#keepalive.stop();
    this.#reads.stop();
    this.#stopPrefaceTimer();
    clearTimeout(this.#drainTimer);
    this.#dropStreams();
    this.#options.onClosed(this);
  }

  #dropStreams(): void {
    for (const stream of this.#streams.values()) stream.receiveReset();
    this.#streams.clear();
    this.#blocked.clear();
  }

  #sendSettings(): void {
    this.#writer.settings([
      [SETTING.maxConcurrentStreams, MAX_STREAMS],
      [SETTING.initialWindowSize, STREAM_WINDOW],
      [SETTING.maxHeaderListSize, MAX_HEADER_BLOCK_BYTES],
    ]);
    this.#writer.windowUpdate(0, CONNECTION_WINDOW - DEFAULT_WINDOW);
    this.flush();
  }
}

const NOTHING = Buffer.alloc(0);

/** Returns false when none of them keeps anything. */
function shedLargest(streams: Iterable<Http2Stream>): boolean {
  let largest: Http2Stream | undefined;
  for (const stream of streams) if (stream.keptBytes > (largest?.keptBytes ?? 0)) largest = stream;
  largest?.listener?.onShed();
  return largest !== undefined;
}
