/**
 * Ends a request that sends its body in too many small chunks, which would stop the event loop. Node calls back for each, about
 * 3 µs, and parses all that a socket has in one turn of the event loop: 300 KB of such chunks stopped it for 0.2 s, without a
 * token.
 *
 * It can also be held: `pause()` of a request that is being read keeps what comes meanwhile, and Node reads on by itself in the
 * turn in which a part was taken.
 */
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The first parts of a body, up to this number, may have any size. */
const MAX_SMALL_PARTS = 1024;
/** The least average length of a chunk in a body with more parts. */
const MIN_BYTES = 64;
/** The same of a part, which may be half a chunk: a read may end in the middle of one. */
const MIN_PART_BYTES = MIN_BYTES / 2;

/** Must be called for each request, before it is handled. */
export function watchChunks(incoming: IncomingMessage, outgoing: ServerResponse): void {
  if (incoming instanceof CountedMessage) incoming.answer = outgoing;
}

/** Node makes it for each request of a server with this class. */
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

  /** Node asks for more after each part. */
  override _read(size: number): void {
    if (!this.#isHeld) super._read(size);
  }

  /** Whether the client may send no more of the body for now: it is held, or no one reads what has come. */
  get isHeldBack(): boolean {
    return this.#isHeld || this.readableLength >= this.readableHighWaterMark;
  }

  /** Reads no more of the body before `goOn`. Returns false when it is held already. */
  hold(): boolean {
    if (this.#isHeld) return false;
    this.#isHeld = true;
    // Nothing would resume the socket of a request that came whole before its first part was taken.
    if (!this.complete) this.socket.pause();
    return true;
  }

  /** A request that is complete may not be resumed: its socket serves the next one. */
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
  /** Node has this parser and does not document it. Without a pause it parses all that was read. */
  readonly parser?: { pause?(): void } | null;
  /** Node has this and does not document it: the answer that is written now when several requests came at once. */
  readonly _httpMessage?: ServerResponse | null;
}

function refuse(socket: ParsedSocket, answer: ServerResponse | undefined): void {
  if (socket.destroyed || socket.writableEnded) return;
  socket.parser?.pause?.();
  socket.pause();
  if (answer?.headersSent === false && socket._httpMessage === answer) socket.write(REFUSAL);
  socket.destroySoon();
}
