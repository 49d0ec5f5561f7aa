/** Prepares the path for a listener: removes a socket file that no process listens on any more. */
import { existsSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { Failure } from '../../errors.ts';

/** Prepares the path for a listener: removes a socket file that no process listens on any more. */
export async function clearUnixSocket(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (!statSync(path).isSocket())
    throw new Failure('invalid', `Cannot listen on "${path}": a file that is not a socket has this name`);
  if (await isListening(path)) throw new Failure('conflict', `Cannot listen on "${path}": another program does`);
  rmSync(path);
}

/**
 * Calls `listen`, which must make the socket file before it returns: the file never has other permissions. Until they were changed
 * afterwards, others could connect, and a connection stays. Undefined leaves the umask.
 */
export function withMode<T>(mode: number | undefined, listen: () => T): T {
  if (mode === undefined) return listen();
  const before = process.umask(0o777 & ~mode);
  try {
    return listen();
  } finally {
    process.umask(before);
  }
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
