/**
 * Encodes a PredictResponse from columns straight into bytes (the hot path). Fields with their default are left out, as the
 * official encoders do, so the bytes are equal to theirs.
 */
import type { PredictColumns, PredictedColumns } from '../schema/columns.ts';
import type { PredictSummary } from './predict-call.ts';

/** The most bytes of an output without its server_ip: tags, two lengths of up to 5 bytes, a varint of 10 and two doubles. */
const MAX_OUTPUT_OVERHEAD = 1 + 5 + 1 + 10 + 1 + 5 + 9 + 9;
const SHORT_COPY = 48;
const MAX_CACHED_TEXTS = 256;
const MAX_CACHED_TEXT_BYTES = 256;

/** Encodes answers into one buffer that grows as needed: the bytes are valid until the next call. */
export class PredictResponseEncoder {
  #buffer = Buffer.allocUnsafeSlow(16_384);
  #view = viewOf(this.#buffer);
  #position = 0;
  readonly #texts = new TextCache();

  encode(summary: PredictSummary, columns: PredictColumns, predicted: PredictedColumns): Uint8Array {
    const targetModel = this.#texts.encode(summary.targetModel);
    const modelVersion = this.#texts.encode(summary.modelVersion);
    this.#reserve(columns, targetModel.length + modelVersion.length);
    this.#position = 0;
    for (let row = 0; row < columns.count; row++) this.#writeOutput(columns, predicted, row);
    this.#writeMetadata(targetModel, modelVersion, summary.omittedInputs);
    return this.#buffer.subarray(0, this.#position);
  }

  #reserve(columns: PredictColumns, textBytes: number): void {
    let size = 64 + textBytes + columns.count * MAX_OUTPUT_OVERHEAD;
    for (let row = 0; row < columns.count; row++) size += columns.serverIpLength[row]!;
    if (size <= this.#buffer.length) return;
    this.#buffer = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(size)));
    this.#view = viewOf(this.#buffer);
  }

  #writeOutput(columns: PredictColumns, predicted: PredictedColumns, row: number): void {
    const inputId = columns.inputId[row]!;
    const ipLength = columns.serverIpLength[row]!;
    const ttftMs = predicted.ttftMs[row]!;
    const tpotMs = predicted.tpotMs[row]!;
    let length = 0;
    if (inputId !== 0) length += 1 + sizeOfInt32(inputId);
    if (ipLength !== 0) length += 1 + sizeOfInt32(ipLength) + ipLength;
    if (!Object.is(ttftMs, 0)) length += 9;
    if (!Object.is(tpotMs, 0)) length += 9;
    this.#writeByte(0x0a);
    this.#writeVarint(length);
    if (inputId !== 0) {
      this.#writeByte(0x08);
      this.#writeInt32(inputId);
    }
    if (ipLength !== 0) {
      this.#writeByte(0x12);
      this.#writeVarint(ipLength);
      this.#copy(columns.source, columns.serverIpStart[row]!, ipLength);
    }
    if (!Object.is(ttftMs, 0)) this.#writeDouble(0x19, ttftMs);
    if (!Object.is(tpotMs, 0)) this.#writeDouble(0x21, tpotMs);
  }

  #writeMetadata(targetModel: Uint8Array, modelVersion: Uint8Array, omittedInputs: number): void {
    let length = 0;
    if (targetModel.length > 0) length += 1 + sizeOfInt32(targetModel.length) + targetModel.length;
    if (modelVersion.length > 0) length += 1 + sizeOfInt32(modelVersion.length) + modelVersion.length;
    if (omittedInputs !== 0) length += 1 + sizeOfInt32(omittedInputs);
    this.#writeByte(0x12);
    this.#writeVarint(length);
    this.#writeText(0x0a, targetModel);
    this.#writeText(0x12, modelVersion);
    if (omittedInputs === 0) return;
    this.#writeByte(0x18);
    this.#writeVarint(omittedInputs);
  }

  #writeText(tag: number, text: Uint8Array): void {
    if (text.length === 0) return;
    this.#writeByte(tag);
    this.#writeVarint(text.length);
    this.#copy(text, 0, text.length);
  }

  #writeByte(value: number): void {
    this.#buffer[this.#position++] = value;
  }

  #writeVarint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#position++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#buffer[this.#position++] = rest;
  }

  /** Extends a negative number to 64 bits, of which the upper five bytes of the varint have only the sign. */
  #writeInt32(value: number): void {
    if (value >= 0) {
      this.#writeVarint(value);
      return;
    }
    for (let shift = 0; shift < 28; shift += 7) this.#writeByte(((value >>> shift) & 0x7f) | 0x80);
    this.#writeByte((value >> 28) | 0x80);
    for (let index = 0; index < 4; index++) this.#writeByte(0xff);
    this.#writeByte(0x01);
  }

  #writeDouble(tag: number, value: number): void {
    this.#buffer[this.#position] = tag;
    this.#view.setFloat64(this.#position + 1, value, true);
    this.#position += 9;
  }

  /** Copies by a loop, which for short addresses is faster than a call into the engine. */
  #copy(source: Uint8Array, start: number, length: number): void {
    const buffer = this.#buffer;
    const position = this.#position;
    if (length > SHORT_COPY) buffer.set(source.subarray(start, start + length), position);
    else for (let index = 0; index < length; index++) buffer[position + index] = source[start + index]!;
    this.#position = position + length;
  }
}

/** Caches the UTF-8 of the names last written, because they are the same from call to call. */
class TextCache {
  readonly #bytesByText = new Map<string, Uint8Array>();

  encode(text: string): Uint8Array {
    const known = this.#bytesByText.get(text);
    if (known !== undefined) return known;
    const bytes = Buffer.from(text, 'utf8');
    if (bytes.length > MAX_CACHED_TEXT_BYTES) return bytes;
    if (this.#bytesByText.size >= MAX_CACHED_TEXTS) this.#bytesByText.clear();
    this.#bytesByText.set(text, bytes);
    return bytes;
  }
}

/** Returns the bytes of a varint; a negative number takes 10. */
function sizeOfInt32(value: number): number {
  if (value < 0) return 10;
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
