/**
 * Writes the protobuf wire format, for messages that are not on the hot path. Numbers are encoded directly into the result: a
 * temporary array for each number would be most of a response's garbage.
 */
export class WireWriter {
  /** A number is written as a varint. */
  readonly #parts: (Uint8Array | number)[] = [];
  #length = 0;

  /** Leaves out an empty string, as proto3 does. */
  string(fieldNumber: number, value: string): this {
    return value === '' ? this : this.bytes(fieldNumber, Buffer.from(value, 'utf8'));
  }

  bytes(fieldNumber: number, value: Uint8Array): this {
    this.#varint((fieldNumber << 3) | 2);
    this.#varint(value.length);
    this.#parts.push(value);
    this.#length += value.length;
    return this;
  }

  message(fieldNumber: number, value: WireWriter): this {
    return this.bytes(fieldNumber, value.finish());
  }

  /** A whole number ≥ 0 below 2^53. Leaves out 0, as proto3 does. */
  count(fieldNumber: number, value: number): this {
    if (value === 0) return this;
    this.#varint(fieldNumber << 3);
    this.#varint(value);
    return this;
  }

  finish(): Buffer {
    const bytes = Buffer.allocUnsafe(this.#length);
    let position = 0;
    for (const part of this.#parts) {
      if (typeof part === 'number') position = writeVarint(bytes, position, part);
      else {
        bytes.set(part, position);
        position += part.length;
      }
    }
    return bytes;
  }

  #varint(value: number): void {
    this.#parts.push(value);
    this.#length += sizeOfVarint(value);
  }
}

function sizeOfVarint(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size += 1;
  return size;
}

/** Returns where the next part begins. */
function writeVarint(bytes: Buffer, start: number, value: number): number {
  let position = start;
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes[position++] = (rest % 128) | 0x80;
  bytes[position++] = rest;
  return position;
}
