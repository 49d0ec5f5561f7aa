/**
 * Frees the memory of a buffer at once, before a garbage collection finds it. As garbage it would count for V8 until a
 * collection finds it, and when 64 MB of it have gathered, the whole heap is marked, which stops the event loop for
 * milliseconds. Nothing may use the memory afterwards: all views of it are empty then. Returns false, and frees nothing, when
 * other bytes may share the memory.
 */
export function freeMemory(bytes: Uint8Array): boolean {
  const { buffer } = bytes;
  if (!(buffer instanceof ArrayBuffer) || !hasOwnMemory(bytes)) return false;
  buffer.transfer(0);
  return true;
}

/** Whether no other bytes share the memory of these: those of less than 32 KiB are often parts of a pool of Node. */
export function hasOwnMemory(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length === bytes.buffer.byteLength;
}
