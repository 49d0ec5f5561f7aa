/**
 * Ends a request that sends its body in too many small chunks, which would stop the event loop. Node's callback for each takes
 * about 3 µs, and Node parses all bytes of a socket in one turn of the event loop: 300 KB of such chunks stopped it for 0.2 s,
 * without a token.
 *
 * The request can also be held: after `pause()` Node would buffer the parts that arrive, and would resume reading by itself in the
 * turn in which a part was taken.
 */
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The first parts of a body, up to this number, may have any size. */
const MAX_SMALL_PARTS = 1024;
/** The least average length of a chunk in a body with more parts. */
const MIN_BYTES = 64;
/** The same for a part, which may be half a chunk: a read may end in the middle of one. */
const MIN_PART_BYTES = MIN_BYTES / 2;

/** Must be called for each request, before it is handled. */
export function watchChunks(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming instanceof CountedMessage) incoming.answer = outgoing;
}

/** The request class of the server: Node creates one for each request. */
export class CountedMessage extends IncomingMessage {
  answer: ServerResponse | undefined;
  #parts = 0;
  #bytes = 0;
  #isHeld = false;

  override push(chunk: Buffer | null): boolean {
    if (chunk === null) return super.push(chunk);
    this.#parts += 1;
    this.#bytes += chunk.length;
    if (this.#parts <= MAX_SMALL_PARTS || this.#bytes >= MIN_PART_BYTES * this.#parts) return super.push(chunk);
    refuse(this.socket, this.answer);
    return false;
  }

  /** Node calls this after each part to read more. */
  override _read(size: number): void {
    if (!this.#isHeld) super._read(size);
  }

  /** Whether the client cannot send more of the body for now: it is held, or its received parts are not read. */
  get isHeldBack(): boolean {
    return this.#isHeld || this.readableLength >= this.readableHighWaterMark;
  }

  /** Stops reading the body until `goOn`. Returns false when it is held already. */
  hold(): boolean {
    if (this.#isHeld) return false;
    this.#isHeld = true;
    // Nothing would resume the socket of a request that was complete before its first part was taken.
    if (!this.complete) this.socket.pause();
    return true;
  }

  /** A complete request must not be resumed: its socket serves the next one. */
  goOn(): void {
    this.#isHeld = false;
    if (!this.complete) super._read(0);
  }
}

const REASON = `Cannot read the request: its chunks must have ${MIN_BYTES} bytes on average\n`;
const REFUSAL = [
  'HTTP/1.1 400 Bad Request',
  'Connection: close',
  'Content-Type: text/plain;charset=UTF-8',
  `Content-Length: ${REASON.length}`,
  '',
  REASON,
].join('\r\n');

interface ParsedSocket extends Socket {
  /** Node's undocumented parser. Unless paused, it parses all bytes that were read. */
  readonly parser?: { pause?(): void } | null;
  /** An undocumented field of Node: the answer that is being written, when several requests came at once. */
  readonly _httpMessage?: ServerResponse | null;
}

function refuse(socket: ParsedSocket, answer: ServerResponse | undefined): void {
  if (socket.destroyed || socket.writableEnded) return;
  socket.parser?.pause?.();
  socket.pause();
  if (answer?.headersSent === false && socket._httpMessage === answer) socket.write(REFUSAL);
  socket.destroySoon();
}
