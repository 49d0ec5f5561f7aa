/** Writes the protobuf wire format, for messages that are not on the hot path. */
export class WireWriter {
  readonly #parts: Uint8Array[] = [];

  /** Leaves out an empty string, as proto3 does. */
  string(fieldNumber: number, value: string): this {
    return value === '' ? this : this.bytes(fieldNumber, Buffer.from(value, 'utf8'));
  }

  bytes(fieldNumber: number, value: Uint8Array): this {
    this.#parts.push(encodeVarint((fieldNumber << 3) | 2), encodeVarint(value.length), value);
    return this;
  }

  message(fieldNumber: number, value: WireWriter): this {
    return this.bytes(fieldNumber, value.finish());
  }

  /** A whole number ≥ 0 below 2^53. Leaves out 0, as proto3 does. */
  count(fieldNumber: number, value: number): this {
    if (value !== 0) this.#parts.push(encodeVarint(fieldNumber << 3), encodeVarint(value));
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

function encodeVarint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
