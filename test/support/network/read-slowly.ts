/** Reads a part of what a server has sent, and leaves the rest in the sockets. */
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { countTaken } from '../../../src/connections/socket-progress.ts';

/** Reads at least as many bytes. The socket must not flow. */
export async function readSome(client: Socket, bytes: number, parts: Buffer[]): Promise<void> {
  for (let left = bytes; left > 0; ) {
    const part = client.read() as Buffer | null;
    if (part === null) await once(client, 'readable');
    else parts.push(part);
    left -= part?.length ?? 0;
  }
}

/**
 * Reads until the kernel has taken this many more bytes from the server, and no further. How much a client must read for that
 * depends on its buffers, and a client that reads freely could get everything at once.
 */
export async function readUntilTaken(client: Socket, accepted: Socket, bytes: number, parts: Buffer[]): Promise<void> {
  const enough = countTaken(accepted) + bytes;
  while (countTaken(accepted) < enough) {
    await readSome(client, 1, parts);
    await setImmediate();
  }
}

/** Resolves with the next connection that a server of this process accepts. */
export function nextAccepted(): Promise<Socket> {
  const accepts = channel('net.server.socket');
  return new Promise((resolve) => {
    const accept = (message: unknown): void => {
      accepts.unsubscribe(accept);
      resolve((message as { readonly socket: Socket }).socket);
    };
    accepts.subscribe(accept);
  });
}
