/**
 * Encodes header blocks that we send, as literals without indexing and without Huffman codes (RFC 7541 §6.2.2). This costs a
 * few bytes, but no block depends on fields sent before, so blocks that never change are encoded once.
 */
export function encodeHeaderBlock(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of headers) {
    if (name === ':status' && value === '200') parts.push(Buffer.of(0x88));
    else parts.push(Buffer.of(0), encodeString(name), encodeString(value));
  }
  return Buffer.concat(parts);
}

function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeInteger(bytes.length), bytes]);
}

/** §5.1 with a prefix of 7 bits. */
function encodeInteger(value: number): Buffer {
  if (value < 127) return Buffer.of(value);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
