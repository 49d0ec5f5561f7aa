/** Opens a file or standard input, and lets its first bytes be inspected before they are read. */
import { createReadStream, open } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { describeError, Failure } from '../../errors.ts';

export interface ByteSource {
  /** The first bytes: enough to detect the format. */
  readonly head: Uint8Array;
  /** All bytes, including the head. Can be read once. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

interface OpenOptions {
  readonly stdin: AsyncIterable<Uint8Array>;
  /** The head has at most this many bytes. */
  readonly headBytes: number;
  /** Returns true if the head is long enough: the next bytes of a stream may take long. */
  readonly isEnough: (head: Uint8Array) => boolean;
  /** Aborts a read that is under way. */
  readonly signal?: AbortSignal | undefined;
}

/** `-` is standard input. */
export async function openBytes(
  path: string,
  { stdin, headBytes, isEnough, signal }: OpenOptions,
): Promise<ByteSource> {
  const source = path === '-' ? stdin : await openStream(path);
  if (signal !== undefined && source instanceof Readable) addAbortSignal(signal, source);
  const rest = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const first: Uint8Array[] = [];
  try {
    for (let length = 0; length < headBytes && !isEnough(Buffer.concat(first)); ) {
      const next = await rest.next();
      if (next.done === true) break;
      first.push(next.value);
      length += next.value.length;
    }
  } catch (error) {
    throw new Failure('invalid', `Cannot read "${path}": ${describeError(error)}`);
  }
  return { head: Buffer.concat(first).subarray(0, headBytes), chunks: chain(first, rest) };
}

const openDescriptor = promisify(open);

/** A named pipe is read like a socket: the program that writes may pause for hours, and a read of a file cannot be aborted. */
async function openStream(path: string): Promise<Readable> {
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isFIFO() !== true) return createReadStream(path);
  return new Socket({ fd: await openDescriptor(path, 'r'), readable: true, writable: false });
}

async function* chain(first: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
