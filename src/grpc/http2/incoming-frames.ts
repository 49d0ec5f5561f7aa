/** Handles each frame of a client: requests, and the frames that control streams and the connection (RFC 9113 §6). */
import { COST, costOfBytes, costOfHeaders, type Share } from '../budget/turns.ts';
import {
  checkGoAway,
  checkPing,
  checkPriority,
  checkReset,
  readSettings,
  readWindowIncrement,
  withoutPadding,
} from '../frames/frame-payloads.ts';
import type { Frame } from '../frames/frame-reader.ts';
import type { FrameWriter } from '../frames/frame-writer.ts';
import { ConnectionError, ERROR, FLAG, FRAME, SETTING } from '../frames/frames.ts';
import { HeaderAssembler, type HeaderBlock } from '../frames/header-assembler.ts';
import type { Field } from '../hpack/fields.ts';
import { HpackDecoder } from '../hpack/hpack-decoder.ts';
import type { ControlFrameLimit } from './control-frame-limit.ts';
import type { ReceiveWindow } from './receive-window.ts';
import { areTrailersMalformed, type Headers, RequestHeadReader } from './request-head.ts';
import type { SendWindows } from './send-windows.ts';
import type { Http2Stream } from './stream.ts';
import type { StreamTable } from './stream-table.ts';

export interface NewStream {
  readonly id: number;
  /** Undefined when the headers are larger than our settings allow: the request must be refused. */
  readonly headers: Headers | undefined;
  readonly contentLength: number | undefined;
}

export interface IncomingFramesDependencies {
  readonly share: Share;
  readonly streams: StreamTable;
  readonly receiveWindow: ReceiveWindow;
  readonly sendWindows: SendWindows;
  readonly writer: FrameWriter;
  readonly controlFrames: ControlFrameLimit;
  /** The window of the connection is low. */
  readonly grantWindow: () => void;
  /** Called with the kept bytes of an incomplete header block. */
  readonly countHeaderBlock: (bytes: number) => void;
  /** Opens a request whose head is complete. Returns its stream. */
  readonly openStream: (stream: NewStream) => Http2Stream;
  readonly onSettings: () => void;
  readonly onPingAnswer: (payload: Buffer) => void;
  readonly onGoAway: () => void;
}

const NOTHING = Buffer.alloc(0);
const DEFAULT_TABLE_BYTES = 4096;

export class IncomingFrames {
  readonly #dependencies: IncomingFramesDependencies;
  readonly #hpack = new HpackDecoder();
  readonly #heads = new RequestHeadReader();
  readonly #headers: HeaderAssembler;
  #hasSettings = false;

  constructor(dependencies: IncomingFramesDependencies) {
    this.#dependencies = dependencies;
    this.#headers = new HeaderAssembler(dependencies.countHeaderBlock);
  }

  /** Returns whether the next frame may be read in this turn. Throws a ConnectionError or an HpackError. */
  readonly read = (frame: Frame): boolean => {
    const { share } = this.#dependencies;
    share.spend(COST.frame + costOfBytes(frame.payload.length));
    this.#handle(frame);
    return !share.isSpent;
  };

  #handle(frame: Frame): void {
    const { type, flags, streamId, payload } = frame;
    if (!this.#hasSettings) this.#checkFirst(type, flags);
    const { openStreamId } = this.#headers;
    if (openStreamId !== undefined && (type !== FRAME.continuation || streamId !== openStreamId))
      throw new ConnectionError(ERROR.protocol, 'a header block is interrupted');
    if (type === FRAME.data) this.#readData(flags, streamId, payload);
    else if (type === FRAME.headers)
      this.#readHeaderBlock(this.#headers.begin(streamId, flags, withoutPadding(flags, payload)));
    else if (type === FRAME.continuation) this.#readHeaderBlock(this.#headers.continue(flags, payload));
    else this.#handleControl(frame);
  }

  #handleControl({ type, flags, streamId, payload }: Frame): void {
    switch (type) {
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
        checkGoAway(streamId, payload);
        this.#dependencies.controlFrames.count();
        this.#dependencies.onGoAway();
        break;
      case FRAME.priority:
        checkPriority(streamId, payload);
        this.#dependencies.controlFrames.count();
        break;
      case FRAME.pushPromise:
        throw new ConnectionError(ERROR.protocol, 'a client must not push');
      default:
        // §4.1: frames of unknown types are ignored.
        this.#dependencies.controlFrames.count();
    }
  }

  /** §3.4: the preface of a client ends with its settings. */
  #checkFirst(type: number, flags: number): void {
    if (type !== FRAME.settings || (flags & FLAG.ack) !== 0)
      throw new ConnectionError(ERROR.protocol, 'a connection begins with settings');
    this.#hasSettings = true;
  }

  #readData(flags: number, streamId: number, payload: Buffer): void {
    const { receiveWindow, controlFrames, streams, grantWindow } = this.#dependencies;
    // §6.1: the whole payload counts, padding too, also on a closed stream.
    receiveWindow.use(payload.length);
    const bytes = withoutPadding(flags, payload);
    const isLast = (flags & FLAG.endStream) !== 0;
    if (bytes.length === 0 && !isLast) controlFrames.count();
    const stream = streams.get(streamId);
    if (stream === undefined) this.#dropData(streamId, isLast);
    else stream.receiveData(bytes, payload.length, isLast);
    if (receiveWindow.isLow) grantWindow();
  }

  /** Handles data on a closed stream (§6.1). */
  #dropData(streamId: number, isLast: boolean): void {
    const { controlFrames, streams, writer } = this.#dependencies;
    this.#checkNotIdle(streamId);
    if (!streams.closed.mayReceive(streamId)) {
      controlFrames.count();
      writer.resetStream(streamId, ERROR.streamClosed);
    }
    if (isLast) streams.closed.endByClient(streamId);
  }

  #readHeaderBlock(block: HeaderBlock | undefined): void {
    if (block === undefined) return;
    const { streamId, endsStream } = block;
    const { controlFrames, share, streams } = this.#dependencies;
    share.spend(costOfHeaders(block.bytes.length));
    // Every block must be decoded, even of a stream that is refused: the blocks after it depend on it.
    const fields = this.#hpack.decode(block.bytes);
    this.#headers.free();
    const known = streams.get(streamId);
    if (known !== undefined) known.receiveTrailers({ isLast: endsStream, isMalformed: areTrailersMalformed(fields) });
    else if (streams.closed.isIdle(streamId)) this.#openStream(streamId, endsStream, fields);
    else {
      streams.closed.checkHeaders(streamId);
      controlFrames.count();
      if (endsStream) streams.closed.endByClient(streamId);
    }
  }

  #openStream(streamId: number, endsStream: boolean, fields: readonly Field[] | undefined): void {
    const { controlFrames, streams, share, openStream } = this.#dependencies;
    streams.closed.open(streamId);
    const { headers, contentLength, isMalformed } = this.#heads.read(fields, this.#hpack.isRemembered(fields));
    if (isMalformed || (endsStream && contentLength !== undefined && contentLength > 0)) {
      this.#refuseStream(streamId, ERROR.protocol);
      return;
    }
    if (!streams.mayOpen(streamId)) {
      this.#refuseStream(streamId, ERROR.refusedStream);
      return;
    }
    if (headers === undefined) controlFrames.count();
    share.spend(COST.call);
    const stream = openStream({ id: streamId, headers, contentLength });
    if (endsStream) stream.receiveData(NOTHING, 0, true);
  }

  #refuseStream(streamId: number, code: number): void {
    const { controlFrames, streams, writer } = this.#dependencies;
    controlFrames.count();
    writer.resetStream(streamId, code);
    streams.closed.addReset(streamId);
  }

  #readReset(streamId: number, payload: Buffer): void {
    const { controlFrames, streams } = this.#dependencies;
    checkReset(payload);
    this.#checkNotIdle(streamId);
    controlFrames.count();
    streams.closed.endByClient(streamId);
    streams.get(streamId)?.receiveReset();
  }

  #readSettings(flags: number, streamId: number, payload: Buffer): void {
    const { controlFrames, onSettings, writer, sendWindows } = this.#dependencies;
    const settings = readSettings(flags, streamId, payload);
    controlFrames.count(1 + (settings?.length ?? 0));
    onSettings();
    if (settings === undefined) return;
    if (settings.some(isSmallTable)) writer.emptyTable();
    // The last of several entries for one setting counts (§6.5.3). A change of the window walks over all streams.
    for (const [setting, value] of new Map(settings)) this.#changeWindows(sendWindows.applySetting(setting, value));
    writer.frame(FRAME.settings, FLAG.ack, 0);
    sendWindows.sendBlocked();
  }

  #changeWindows(change: number): void {
    if (change === 0) return;
    const { share, streams } = this.#dependencies;
    share.spend(streams.size * COST.frame);
    for (const stream of streams.list()) stream.changeInitialWindow(change);
  }

  #readPing(flags: number, streamId: number, payload: Buffer): void {
    const { controlFrames, onPingAnswer, writer } = this.#dependencies;
    checkPing(streamId, payload);
    if ((flags & FLAG.ack) === 0) {
      controlFrames.countReaction();
      writer.frame(FRAME.ping, FLAG.ack, 0, payload);
      return;
    }
    controlFrames.count();
    onPingAnswer(payload);
  }

  #readWindowUpdate(streamId: number, payload: Buffer): void {
    const { controlFrames, sendWindows, streams } = this.#dependencies;
    const increment = readWindowIncrement(payload);
    controlFrames.countReaction();
    if (streamId === 0) sendWindows.add(increment);
    else {
      this.#checkNotIdle(streamId);
      streams.get(streamId)?.receiveWindowUpdate(increment);
    }
    sendWindows.sendBlocked();
  }

  #checkNotIdle(streamId: number): void {
    if (this.#dependencies.streams.closed.isIdle(streamId))
      throw new ConnectionError(ERROR.protocol, 'a frame belongs to a stream that was not opened');
  }
}

/** Smaller than the default of a client's header table, 4,096 bytes (RFC 9113 §6.5.2). */
function isSmallTable([setting, value]: readonly [setting: number, value: number]): boolean {
  return setting === SETTING.headerTableSize && value < DEFAULT_TABLE_BYTES;
}
