/** Caches the last short text that was decoded, such as the name of a model, so that the hot path creates no string. */
import type { WireReader } from '../../grpc/protobuf/wire-reader.ts';

/** Longer texts are decoded each time and not kept. */
const MAX_CACHED_BYTES = 256;

/** Caches the last text, because clients send the same one in each call. */
export class TextCache {
  #text = '';
  #bytes = new Uint8Array(0);

  /** Returns the text in a range of the reader's bytes. */
  read(reader: WireReader, start: number, length: number): string {
    if (this.#bytes.length === length && matches(reader.bytes, start, this.#bytes)) return this.#text;
    const text = reader.readUtf8(start, length);
    if (length > MAX_CACHED_BYTES) return text;
    this.#text = text;
    // A copy, because other requests are read into the same memory (`slice` of a Buffer would be a view).
    this.#bytes = new Uint8Array(reader.bytes.subarray(start, start + length));
    return text;
  }
}

function matches(bytes: Uint8Array, start: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index++) if (bytes[start + index] !== expected[index]) return false;
  return true;
}
