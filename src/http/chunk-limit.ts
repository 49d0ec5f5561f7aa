/**
 * A body may come in chunks of a single byte. Node calls back for each, about 3 µs, and parses all that a socket has in one turn
 * of the event loop: 300 KB of such chunks stopped it for 0.2 s, without a token. So the connection is closed when its chunks
 * are many and small.
 */
import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** As many parts of a body may have any size. */
const MAX_SMALL_PARTS = 1024;
/** Of a chunk, on average, where there are more. */
const MIN_BYTES = 64;
/** Of a part: a read may end in the middle of a chunk. */
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

  override push(chunk: Buffer | null): boolean {
    if (chunk === null) return super.push(chunk);
    this.#parts += 1;
    this.#bytes += chunk.length;
    if (this.#parts <= MAX_SMALL_PARTS || this.#bytes >= MIN_PART_BYTES * this.#parts) return super.push(chunk);
    refuse(this.socket, this.answer);
    return false;
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
  /** Of Node; in no documentation. Without it, what was read is still parsed to its end. */
  readonly parser?: { pause?(): void } | null;
}

function refuse(socket: ParsedSocket, answer: ServerResponse | undefined): void {
  if (socket.destroyed || socket.writableEnded) return;
  socket.parser?.pause?.();
  socket.pause();
  if (answer?.headersSent === false) socket.write(REFUSAL);
  socket.destroySoon();
}
