/**
 * Frees the memory of a buffer at once, before a garbage collection finds it. Until then V8 would count it, and at 64 MB of such
 * garbage V8 marks the whole heap, which stops the event loop for milliseconds. Nothing may use the memory afterwards: all views
 * of it are empty. Returns false, and frees nothing, when other bytes may share the memory.
 */
export function freeMemory(bytes: Uint8Array): boolean {
  const { buffer } = bytes;
  if (!(buffer instanceof ArrayBuffer) || !hasOwnMemory(bytes)) return false;
  buffer.transfer(0);
  return true;
}

/** Whether no other bytes share this memory: buffers of less than 32 KiB are often parts of Node's pool. */
export function hasOwnMemory(bytes: Uint8Array): boolean {
  return bytes.length > 0 && bytes.length === bytes.buffer.byteLength;
}
