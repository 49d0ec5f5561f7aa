/** Starts a collection of the young generation after every 16 MiB that sockets have read, to avoid long pauses. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Collector {
  /** Collects the whole heap, which takes tens of milliseconds. */
  readonly collectAll: () => void;
  /** Collects the young generation and the memory outside the heap that its dead objects hold, in less than a millisecond. */
  readonly collectYoung: () => void;
}

/** Gets V8's garbage collector, which only this flag exposes. */
export function openCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return { collectAll: () => collect(), collectYoung: () => collect({ type: 'minor' }) };
}

/** Counts bytes outside the heap that are garbage once they are used. */
export type CountGarbage = (bytes: number) => void;

const MAX_BYTES = 16_777_216;

/**
 * Collects the young generation after every 16 MiB that sockets have read. A read is a buffer outside the heap, and garbage once
 * it was copied. Reads put few objects on the heap, so V8 by itself collects the young generation rarely, and the buffers stay. At
 * 64 MB of buffers V8 marks the whole heap, which stops the event loop for 5 to 20 ms. The collection here takes less than a
 * millisecond, and runs at the end of the turn of the event loop.
 */
export function createGarbageCounter(collectYoung: () => void, maxBytes = MAX_BYTES): CountGarbage {
  let bytes = 0;
  const collect = (): void => {
    bytes = 0;
    collectYoung();
  };
  return (more) => {
    const before = bytes;
    bytes += more;
    if (before < maxBytes && bytes >= maxBytes) setImmediate(collect);
  };
}
