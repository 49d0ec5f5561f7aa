/** Reads the protobuf wire format in place, as strictly as the official parsers. */
import { isUtf8 } from 'node:buffer';
import { Failure } from '../../errors.ts';

/**
 * Reads the protobuf wire format in place. As strict as the official parsers: truncated fields, over-long varints,
 * strings that are not UTF-8, unbalanced groups and field number 0 are refused; a known field with another wire type is
 * an unknown field, for the caller to `skip`.
 */
export class WireReader {
  bytes: Uint8Array;
  position = 0;
  /** Where the message that is being read ends. */
  end: number;
  /** A view on the same bytes. */
  view: DataView;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Restarts on other bytes, so that code on the hot path needs one reader only. */
  reset(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.position = 0;
    this.end = bytes.length;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Field number and wire type, as `number << 3 | type`; compare it with a constant. */
  readTag(): number {
    const first = this.position < this.end ? this.bytes[this.position]! : 0x80;
    if (first >= 0x80) return this.#readLongTag();
    this.position += 1;
    return first;
  }

  /** The low 32 bits of a varint: negative numbers take 10 bytes. */
  readInt32(): number {
    const first = this.position < this.end ? this.bytes[this.position]! : 0x80;
    if (first >= 0x80) return this.#readLongInt32();
    this.position += 1;
    return first;
  }

  /** A signed 64-bit varint as a number; beyond 2^53 it is rounded, as numbers are. */
  readInt64(): number {
    let low = 0;
    let high = 0;
    for (let index = 0; index < 10; index++) {
      const byte = this.#readByte();
      const bits = byte & 0x7f;
      if (index < 4) low += bits * 2 ** (7 * index);
      else high += bits * 2 ** (7 * (index - 4));
      if (byte < 0x80) return toSigned64(low, high);
    }
    throw malformed('a varint is longer than 10 bytes');
  }

  readDouble(): number {
    const start = this.position;
    if (start + 8 > this.end) throw truncated();
    this.position = start + 8;
    return this.view.getFloat64(start, true);
  }

  /** Reads a length, and checks that as many bytes follow. */
  readLength(): number {
    const first = this.position < this.end ? this.bytes[this.position]! : 0x80;
    let length = first;
    if (first >= 0x80) length = this.#readLongLength();
    else this.position += 1;
    if (this.position + length > this.end) throw truncated();
    return length;
  }

  readString(): string {
    const length = this.readLength();
    const start = this.position;
    this.position = start + length;
    return this.readUtf8(start, length);
  }

  /** Skips a string and checks that it is UTF-8, without decoding it; returns its length in bytes. */
  passString(): number {
    const length = this.readLength();
    const start = this.position;
    const { bytes } = this;
    const end = start + length;
    this.position = end;
    let all = 0;
    for (let index = start; index < end; index++) all |= bytes[index]!;
    // ASCII needs no check by the engine.
    if (all >= 0x80 && !isUtf8(bytes.subarray(start, end))) throw malformed('a string is not UTF-8');
    return length;
  }

  /** The text of a range of the bytes. */
  readUtf8(start: number, length: number): string {
    const text = this.bytes.subarray(start, start + length);
    if (!isUtf8(text)) throw malformed('a string is not UTF-8');
    return decoder.decode(text);
  }

  /** Reads an embedded message: `read` is called until its bytes are used up. */
  readMessage<T>(read: (reader: this) => T): T {
    const length = this.readLength();
    const outerEnd = this.end;
    this.end = this.position + length;
    const value = read(this);
    this.end = outerEnd;
    return value;
  }

  hasMore(): boolean {
    return this.position < this.end;
  }

  /** Skips the value of an unknown field. */
  skip(tag: number, depth = 0): void {
    if (tag >>> 3 === 0) throw malformed('field number 0');
    switch (tag & 7) {
      case 0:
        this.#readLongInt32();
        return;
      case 1:
        this.#pass(8);
        return;
      case 2:
        this.#pass(this.readLength());
        return;
      case 3:
        this.#skipGroup(tag >>> 3, depth);
        return;
      case 5:
        this.#pass(4);
        return;
      default:
        throw malformed(`wire type ${tag & 7}`);
    }
  }

  #skipGroup(fieldNumber: number, depth: number): void {
    if (depth >= MAX_DEPTH) throw malformed('groups are nested too deep');
    for (;;) {
      const tag = this.readTag();
      if ((tag & 7) !== 4) this.skip(tag, depth + 1);
      else if (tag >>> 3 === fieldNumber) return;
      else throw malformed('a group ends as another');
    }
  }

  #pass(length: number): void {
    if (this.position + length > this.end) throw truncated();
    this.position += length;
  }

  #readByte(): number {
    if (this.position >= this.end) throw truncated();
    return this.bytes[this.position++]!;
  }

  #readLongInt32(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#readByte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed('a varint is longer than 10 bytes');
  }

  #readLongTag(): number {
    const tag = this.#readFiveBytes();
    if (tag > 0xffff_ffff) throw malformed('a tag is out of range');
    return tag >>> 0;
  }

  #readLongLength(): number {
    const length = this.#readFiveBytes();
    if (length > 0x7fff_ffff) throw malformed('a length is out of range');
    return length;
  }

  #readFiveBytes(): number {
    let value = 0;
    for (let index = 0; index < 5; index++) {
      const byte = this.#readByte();
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value;
    }
    throw malformed('a varint is too long');
  }
}

const MAX_DEPTH = 100;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `low` holds bits 0–27, `high` the bits from 28 on. */
function toSigned64(low: number, high: number): number {
  const bits = (BigInt(high) << 28n) + BigInt(low);
  return Number(BigInt.asIntN(64, bits));
}

function truncated(): Failure {
  return malformed('it is cut off');
}

function malformed(reason: string): Failure {
  return new Failure('invalid', `Cannot read the message: ${reason}`);
}
