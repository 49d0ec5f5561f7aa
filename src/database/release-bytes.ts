/**
 * Frees the memory of bytes that are not used any more, and empties them. It lies outside the heap, and the collector, which
 * sees the heap, lets 64 MB of it gather in each thread. Bytes that are part of a larger buffer are left alone.
 */
export function releaseBytes(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) buffer.transfer(0);
}
