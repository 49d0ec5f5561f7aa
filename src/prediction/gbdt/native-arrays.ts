/** Converts typed arrays from and to little-endian bytes. */

const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Returns the elements as little-endian bytes, whatever the byte order of this machine. */
export function toLittleEndian(values: Float64Array | Float32Array | Int32Array | Int16Array): Uint8Array {
  const bytes = Buffer.from(values.buffer.slice(values.byteOffset, values.byteOffset + values.byteLength));
  if (!IS_LITTLE_ENDIAN) swapBytes(bytes, values.BYTES_PER_ELEMENT);
  return bytes;
}

/** Returns a copy of `count` elements of `size` bytes, in the byte order of this machine. */
export function copyNative(body: Uint8Array, from: number, count: number, size: number): ArrayBuffer {
  const bytes = new Uint8Array(count * size);
  bytes.set(body.subarray(from, from + count * size));
  if (!IS_LITTLE_ENDIAN) swapBytes(Buffer.from(bytes.buffer), size);
  return bytes.buffer;
}

function swapBytes(bytes: Buffer, size: number): void {
  if (size === 2) bytes.swap16();
  else if (size === 4) bytes.swap32();
  else bytes.swap64();
}
