/** Limits how many files and sockets may be open to a share of those that the system allows (`ulimit -n`). */
import { readFileSync } from 'node:fs';

/** How many files and sockets the system allows this process; undefined where it does not report the limit. */
export function readMaxOpenFiles(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** Returns at most this share of the open files: a listener must leave some to the other listeners, the store and outgoing connections. */
export function capByOpenFiles(connections: number, share: number, maxOpenFiles = readMaxOpenFiles()): number {
  if (maxOpenFiles === undefined) return connections;
  return Math.max(1, Math.min(connections, Math.floor(share * maxOpenFiles)));
}
