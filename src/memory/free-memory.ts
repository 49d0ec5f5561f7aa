/**
 * Frees the memory of bytes at once. As garbage it would count for V8 until a collection finds it, and when 64 MB of it have
 * gathered, the whole heap is marked, which stops the event loop for milliseconds. Nothing may use the memory afterwards: all
 * views of it are empty then.
 */
export function freeMemory({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Whether no other bytes share the memory of these: small ones are parts of a pool. */
export function hasOwnMemory(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length === bytes.buffer.byteLength;
}
