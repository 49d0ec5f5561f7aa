import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface Collector {
  /** The whole heap: tens of milliseconds. */
  readonly collectAll: () => void;
  /** The young generation, with the memory outside the heap that its dead objects hold: less than a millisecond. */
  readonly collectYoung: () => void;
}

/** The collector of V8, which has no other interface than this flag. */
export function openCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { readonly type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return { collectAll: () => collect(), collectYoung: () => collect({ type: 'minor' }) };
}

/** Counts bytes outside the heap that are garbage once they are used. */
export type NoteGarbage = (bytes: number) => void;

const MAX_BYTES = 16_777_216;

/**
 * What a socket reads is memory outside the heap, and dead once it was copied or used. It brings few objects into the heap, so
 * the young generation is collected rarely, and the reads stay. When 64 MB of them have gathered, V8 marks the whole heap, which
 * stops the event loop for 5 to 20 ms, and what is left of the reads takes as much memory again. So the young generation is
 * collected when this much was read, at the end of the turn of the event loop.
 */
export function createGarbageCounter(collectYoung: () => void, maxBytes = MAX_BYTES): NoteGarbage {
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
