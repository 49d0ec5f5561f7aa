/** Drains a connection on shutdown: GOAWAY, a ping so that calls in flight still arrive, GOAWAY with the last call (RFC 9113 §6.8). */
import type { Socket } from 'node:net';
import type { FrameWriter } from '../frames/frame-writer.ts';
import { ERROR, MAX_WINDOW } from '../frames/frames.ts';
import type { StreamTable } from './stream-table.ts';

/** How long to wait for the answer to the ping. */
const PING_MS = 1000;
/** Calls whose request is still unfinished by then are ended. */
const REQUEST_MS = 3000;
const PING = Buffer.from('drainnow');

export interface DrainDependencies {
  readonly socket: Socket;
  readonly writer: FrameWriter;
  readonly streams: StreamTable;
  readonly sendPing: (payload: Buffer) => void;
  readonly flush: () => void;
  /** Ends the connection after its last call. */
  readonly endSoon: () => void;
}

export class Drain {
  readonly #dependencies: DrainDependencies;
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;
  /** The GOAWAY that names the last call was sent: no later call is taken. */
  #isLastNamed = false;

  constructor(dependencies: DrainDependencies) {
    this.#dependencies = dependencies;
  }

  /** Whether the connection ends with its last call. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** The client requested the end itself. Its running calls are still answered, as in any drain. */
  receiveGoAway(): void {
    this.#isEnding = true;
  }

  /** Asks the client for no more calls. Without `canPing` the client has sent nothing yet, and no ping is needed. */
  begin(canPing: boolean): void {
    const { socket, writer, sendPing } = this.#dependencies;
    if (this.#isLastNamed || socket.destroyed) return;
    if (!canPing) {
      this.#finish();
      return;
    }
    // Calls may be in flight: they are taken until the ping is answered, since the client has then read the GOAWAY.
    writer.goAway(MAX_WINDOW, ERROR.none);
    sendPing(PING);
    this.#timer = setTimeout(() => this.#finish(), PING_MS).unref();
  }

  receivePingAnswer(payload: Buffer): void {
    if (payload.equals(PING)) this.#finish();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** The client has read the first GOAWAY: calls that it has opened until now are answered, later ones are not. */
  #finish(): void {
    const { socket, writer, streams, flush, endSoon } = this.#dependencies;
    clearTimeout(this.#timer);
    if (this.#isLastNamed || socket.destroyed) return;
    streams.refuseMore();
    writer.goAway(streams.closed.lastId, ERROR.none);
    this.#isLastNamed = true;
    this.#isEnding = true;
    if (streams.size === 0) endSoon();
    else flush();
    this.#timer = setTimeout(() => streams.cutUnfinished(), REQUEST_MS).unref();
  }
}
