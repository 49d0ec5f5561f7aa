/**
 * Frees the memory of bytes that were read from the store and are no longer used. This memory is outside the heap, and the
 * garbage collector lets 64 MB of it accumulate in each thread. Afterwards the bytes have the length 0. Bytes that are part of a
 * larger buffer are left alone.
 */
export function releaseBytes(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) buffer.transfer(0);
}
