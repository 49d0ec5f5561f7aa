/** Closes a connection so that its client can read the last frames and cannot keep it open. */
import type { Socket } from 'node:net';
import { countTaken } from '../../connections/socket-progress.ts';

/** How long the client may take to close its side, once the kernel has taken all answers. */
const END_MS = 5000;
/** How long the client may take no bytes before that: the kernel reports up to 1.3 MB at once, which a slow client reads for seconds. */
const TAKE_MS = 20_000;
const CHECK_MS = 1000;
/** How long the final GOAWAY may take to be sent before the connection is destroyed. */
const LINGER_MS = 500;
/** How many bytes of a closing client are discarded: a client that keeps sending does not read. */
const DISCARD_BYTES = 1_048_576;

/** Closes without waiting for a client that does not close its side. Its reader must be stopped: late bytes are discarded. */
export function endSocket(socket: Socket): void {
  discardLateBytes(socket);
  destroyUnread(socket);
  socket.end();
}

/** The client has ended its side. It may still read the answers to its running calls. */
export function endHalfOpenLater(socket: Socket): void {
  destroyUnread(socket);
}

/** Ends as soon as all written bytes are sent. */
export function endSocketSoon(socket: Socket): void {
  socket.destroySoon();
  destroyAfter(socket, LINGER_MS);
}

/** Does the same as `endSocket` for a connection that gave its place, but within 20 s: a client that goes on reading must not keep it. */
export function endSocketInTime(socket: Socket): void {
  endSocket(socket);
  destroyAfter(socket, TAKE_MS);
}

/** Closes once the last frames were sent. */
export function endSocketAfterFault(socket: Socket): void {
  discardLateBytes(socket);
  destroyAfter(socket, LINGER_MS);
}

/**
 * Late bytes are read and discarded for a moment: closing with unread bytes resets the connection
 * (RFC 1122 §4.2.2.13), and the client could lose our last frames.
 */
function discardLateBytes(socket: Socket): void {
  let discardable = DISCARD_BYTES;
  socket.on('data', (chunk: Buffer) => {
    discardable -= chunk.length;
    if (discardable < 0) socket.destroy();
  });
  socket.resume();
}

/** Destroys the socket once its client has taken nothing for a while. A timeout of the socket would restart with each received byte. */
function destroyUnread(socket: Socket): void {
  if (socket.closed) return;
  let takenBytes = countTaken(socket);
  let unreadMs = 0;
  const timer = setInterval(() => {
    const before = takenBytes;
    takenBytes = countTaken(socket);
    unreadMs = takenBytes > before ? 0 : unreadMs + CHECK_MS;
    if (unreadMs >= (socket.writableLength > 0 ? TAKE_MS : END_MS)) socket.destroy();
  }, CHECK_MS).unref();
  socket.once('close', () => clearInterval(timer));
}

/** Drops a connection as soon as it has closed: thousands may open and close in a second. */
function destroyAfter(socket: Socket, ms: number): void {
  if (socket.closed) return;
  const timer = setTimeout(() => socket.destroy(), ms).unref();
  socket.once('close', () => clearTimeout(timer));
}
