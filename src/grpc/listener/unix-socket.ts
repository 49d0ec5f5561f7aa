/** Opens a unix socket, replaces one that no process listens on any more, and removes its own socket file at the end. */
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../../errors.ts';

/** Where to make a socket, and its name in errors: the setting that the operator knows. */
export interface SocketPlace {
  readonly path: string;
  readonly name: string;
}

/**
 * Opens the socket by `listen`, which must make the socket file at `path` before it returns, and calls it `name` in its errors.
 * Returns a function that removes the file.
 *
 * It is made under another name: when Node stops, it removes the path at which it listens, whatever file has that path by then.
 */
export async function openUnixSocket(
  path: string,
  mode: number | undefined,
  listen: (at: SocketPlace) => Promise<unknown>,
): Promise<() => void> {
  await checkSocketFree(path);
  if (isNamedPipe(path)) {
    await listen({ path, name: path });
    return () => {};
  }
  const made = nameBeside(path);
  await withMode(mode, () => listen({ path: made, name: path }));
  const own = statSync(made);
  if (!moveIfFree(made, path)) {
    await checkSocketFree(path);
    renameSync(made, path);
  }
  return () => {
    const present = statSync(path, { throwIfNoEntry: false });
    if (present?.ino === own.ino && present.dev === own.dev) rmSync(path, { force: true });
  };
}

/** Returns another path in the same folder that is no longer: the path of a socket has at most 107 bytes. */
export function nameBeside(path: string): string {
  return join(dirname(path), makeName(basename(path)));
}

function makeName(name: string): string {
  const made = `.${randomBytes(4).toString('base64url')}`.slice(-Buffer.byteLength(name));
  return made === name ? makeName(name) : made;
}

/** Returns false if the name is taken (perhaps by a program that started at the same time) or the file system has no hard links. */
function moveIfFree(made: string, path: string): boolean {
  try {
    linkSync(made, path);
  } catch {
    return false;
  }
  rmSync(made);
  return true;
}

/** A named pipe of Windows, which has no file. */
function isNamedPipe(path: string): boolean {
  return path.startsWith('\\\\');
}

/** Throws unless the path is free, or has a socket on which no process listens. */
export async function checkSocketFree(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (!statSync(path).isSocket())
    throw new Failure('invalid', `Cannot listen on "${path}": a file that is not a socket has this name`);
  const error = await findConnectError(path);
  if (error === undefined) throw new Failure('conflict', `Cannot listen on "${path}": another program does`);
  if (!NO_LISTENER.includes(error.code ?? ''))
    throw new Failure('conflict', `Cannot listen on "${path}": it may be in use, ${error.message}`);
}

/** The error of the system when no process listens on a socket. A busy process (EAGAIN) or one of another user gives other errors. */
const NO_LISTENER: readonly string[] = ['ECONNREFUSED', 'ENOENT'];

/**
 * Calls `listen`, which must make the socket file before it returns, with a umask that gives the file its permissions at once. If
 * they were set afterwards, others could connect before, and a connection stays open. Undefined leaves the umask.
 */
function withMode<T>(mode: number | undefined, listen: () => T): T {
  if (mode === undefined) return listen();
  const before = process.umask(0o777 & ~mode);
  try {
    return listen();
  } finally {
    process.umask(before);
  }
}

function findConnectError(path: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.once('error', resolve);
  });
}
