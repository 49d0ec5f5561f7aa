import { existsSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { Failure } from '../../errors.ts';

/** Makes place for a listener: a socket file that nobody listens on any more is removed. */
export async function clearUnixSocket(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (await isListening(path)) throw new Failure('conflict', `Cannot listen on "${path}": another program does`);
  rmSync(path);
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
