/** Counts the bytes of a socket that the kernel has taken, also while a long write is under way. */
import type { Socket } from 'node:net';

const COUNT_MS = 500;

/** A client that sends or takes this many bytes makes progress. One that drips them counts as waiting. */
export const PROGRESS_BYTES = 16_384;

/** Undocumented counters of Node: written bytes, and bytes that the kernel has not taken. Without them, only the end of a write shows. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
  /** With TLS, the handle of the TCP socket: the handle of TLS changes only at the end of a write. */
  readonly _parent?: Handle;
}

/** Returns the bytes of the socket that the kernel has taken; with TLS, encrypted bytes. */
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
