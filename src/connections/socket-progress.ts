/** Counts the bytes of a socket that the kernel has taken, also while a long write is under way. */
import type { Socket } from 'node:net';

const COUNT_MS = 500;

/** A client that sends or takes this many bytes goes on. One that drips them waits. */
export const PROGRESS_BYTES = 16_384;

/** Node counts what was written and what the kernel has not taken, and documents neither. Without it, a long write is seen at its end alone. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  /** Of TLS: the handle of TCP. That of TLS itself changes at the end of a write alone. */
  readonly _parent?: Handle;
}

/** The bytes of the socket that the kernel has taken; of TLS, those that are encrypted. */
export function countTaken(socket: Socket & { readonly _handle?: Handle | null }): number {
  const handle = socket._handle?._parent ?? socket._handle;
  return (handle?.bytesWritten ?? 0) - (handle?.writeQueueSize ?? 0);
}

/** Calls the function of each connection twice a second, since no event reports that the kernel took a part of a long write. */
export function followProgress(connections: Iterable<{ noteProgress(): void }>): Disposable {
  const timer = setInterval(() => {
    for (const connection of connections) connection.noteProgress();
  }, COUNT_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
