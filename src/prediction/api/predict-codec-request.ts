/**
 * Decodes the bytes of a PredictRequest straight into columns (the hot path), without objects in between and without generated
 * code. It accepts what the official parsers accept.
 */
import { WireReader } from '../../grpc/protobuf/wire-reader.ts';
import type { PredictColumns } from '../schema/columns.ts';
import { METRICS } from '../schema/input-fields.ts';
import { addRow, MAX_INPUTS, startColumns } from './predict-call.ts';
import { TextCache } from './text-cache.ts';

/** Wire types, as protobuf numbers them. */
const VARINT = 0;
const DOUBLE = 1;
const WIRE_TYPE = { int32: VARINT, double: DOUBLE } as const;
const INPUT_ID = 0x08;
const POD_TYPE = 0x12;
const SERVER_IP = 0x62;
/** Tags of fields up to number 15 have one byte: they are below this. */
const TAGS_OF_A_BYTE = 0x80;
/** From this many distinct pod types on, a map is faster than a linear search. */
const MANY_POD_TYPES = 8;

/** Decodes requests into columns that it reuses, so it serves one call at a time. */
export class PredictRequestDecoder {
  readonly #columns: PredictColumns;
  /** The column of each metric by the tag of its field; undefined for every other tag. */
  readonly #numbers: readonly (Float64Array | undefined)[];
  readonly #reader = new WireReader(new Uint8Array(0));
  /** The position and length of the pod type in the input that is being read. */
  #podTypeStart = 0;
  #podTypeLength = 0;
  /** The positions and lengths of the distinct pod types in the bytes of this call. */
  readonly #podTypeStarts = new Int32Array(MAX_INPUTS);
  readonly #podTypeLengths = new Int32Array(MAX_INPUTS);
  /** The index of each pod type, filled only when there are many. */
  #podTypeIndexes = new Map<string, number>();
  readonly #modelCache = new TextCache();
  /** A cache for each index, because clients send the same pod types in the same order. */
  readonly #podTypeCaches = Array.from({ length: MANY_POD_TYPES }, () => new TextCache());

  /** `columns` must have room for `MAX_INPUTS`. */
  constructor(columns: PredictColumns) {
    this.#columns = columns;
    this.#numbers = listColumnsByTag(columns);
  }

  /** Fills the columns and returns the target model. Throws `invalid` for bytes that are not a PredictRequest. */
  decode(request: Uint8Array): string {
    const reader = this.#reader;
    reader.reset(request);
    startColumns(this.#columns, request);
    // A new map, because clearing one on each call leaves garbage in the old generation of the heap (`memory/id-table.ts`).
    if (this.#podTypeIndexes.size > 0) this.#podTypeIndexes = new Map();
    let targetModel = '';
    while (reader.position < reader.end) {
      const tag = reader.readTag();
      if (tag === 0x12) this.#decodeInput(reader);
      else if (tag === 0x0a) targetModel = this.#decodeTargetModel(reader);
      else reader.skip(tag);
    }
    return targetModel;
  }

  /**
   * Reads texts and numbers of usual size, which nearly all fields are, with its whole state in local variables. This takes two thirds
   * of the time of the same code in several functions. Long numbers, unknown fields and invalid bytes are left to the reader.
   */
  #decodeInput(reader: WireReader): void {
    const columns = this.#columns;
    const numbers = this.#numbers;
    const row = addRow(columns);
    const length = reader.readLength();
    const outerEnd = reader.end;
    const end = reader.position + length;
    reader.end = end;
    this.#podTypeStart = 0;
    this.#podTypeLength = 0;
    const { bytes, view } = reader;
    let { position } = reader;
    while (position < end) {
      const tag = bytes[position]!;
      const at = position + 1;
      if (isOfType(DOUBLE, tag) && at + 8 <= end) {
        setNumber(numbers[tag], row, view.getFloat64(at, true));
        position = at + 8;
        continue;
      }
      if (isOfType(VARINT, tag) && at + 3 <= end) {
        let value = bytes[at]!;
        let next = at + 1;
        if (value >= 0x80) {
          const second = bytes[at + 1]!;
          value = (value & 0x7f) | ((second & 0x7f) << 7);
          next = at + 2;
          if (second >= 0x80) {
            const third = bytes[at + 2]!;
            value |= third << 14;
            next = third < 0x80 ? at + 3 : 0;
          }
        }
        if (next > 0) {
          if (tag === INPUT_ID) columns.inputId[row] = value;
          else setNumber(numbers[tag], row, value);
          position = next;
          continue;
        }
      }
      reader.position = position;
      if (tag === POD_TYPE || tag === SERVER_IP) {
        reader.position = at;
        this.#passText(reader, tag, row);
      } else this.#decodeRareField(reader, row);
      ({ position } = reader);
    }
    reader.end = outerEnd;
    columns.podType[row] = this.#findPodType(this.#podTypeStart, this.#podTypeLength, row);
  }

  /** Decodes any field, with a tag and a number in any encoding. */
  #decodeRareField(reader: WireReader, row: number): void {
    const tag = reader.readTag();
    if (tag === POD_TYPE || tag === SERVER_IP) this.#passText(reader, tag, row);
    else if (tag === INPUT_ID) this.#columns.inputId[row] = reader.readInt32();
    else if (isOfType(VARINT, tag)) setNumber(this.#numbers[tag], row, reader.readInt32());
    else if (isOfType(DOUBLE, tag)) setNumber(this.#numbers[tag], row, reader.readDouble());
    else reader.skip(tag);
  }

  #passText(reader: WireReader, tag: number, row: number): void {
    const length = reader.passString();
    const start = reader.position - length;
    if (tag === SERVER_IP) {
      this.#columns.serverIpStart[row] = start;
      this.#columns.serverIpLength[row] = length;
    } else {
      this.#podTypeStart = start;
      this.#podTypeLength = length;
    }
  }

  /** Returns the index of a pod type among those of this call. Most rows have that of the previous row. */
  #findPodType(start: number, length: number, row: number): number {
    const previous = row === 0 ? -1 : this.#columns.podType[row - 1]!;
    if (previous >= 0 && this.#isPodType(previous, start, length)) return previous;
    const { podTypes } = this.#columns;
    if (podTypes.length >= MANY_POD_TYPES) return this.#findAmongMany(start, length);
    for (let index = 0; index < podTypes.length; index++) if (this.#isPodType(index, start, length)) return index;
    const podType = this.#podTypeCaches[podTypes.length]!.read(this.#reader, start, length);
    return this.#addPodType(podType, start, length);
  }

  /** Uses a map, because comparisons with each pod type would take quadratic time. */
  #findAmongMany(start: number, length: number): number {
    const { podTypes } = this.#columns;
    const indexes = this.#podTypeIndexes;
    if (indexes.size === 0) for (const [index, podType] of podTypes.entries()) indexes.set(podType, index);
    const podType = this.#reader.readUtf8(start, length);
    const known = indexes.get(podType);
    if (known !== undefined) return known;
    indexes.set(podType, podTypes.length);
    return this.#addPodType(podType, start, length);
  }

  #addPodType(podType: string, start: number, length: number): number {
    const index = this.#columns.podTypes.push(podType) - 1;
    this.#podTypeStarts[index] = start;
    this.#podTypeLengths[index] = length;
    return index;
  }

  #isPodType(index: number, start: number, length: number): boolean {
    if (this.#podTypeLengths[index] !== length) return false;
    return areEqual(this.#reader.bytes, this.#podTypeStarts[index]!, start, length);
  }

  #decodeTargetModel(reader: WireReader): string {
    const length = reader.passString();
    const start = reader.position - length;
    return this.#modelCache.read(reader, start, length);
  }
}

/** Lists columns by tag, because an array finds a column faster than a chain of comparisons. */
function listColumnsByTag(columns: PredictColumns): (Float64Array | undefined)[] {
  const byTag: (Float64Array | undefined)[] = Array.from({ length: TAGS_OF_A_BYTE }, () => undefined);
  for (const { number, kind, column } of METRICS) byTag[(number << 3) | WIRE_TYPE[kind]] = columns[column];
  return byTag;
}

/** Drops the value of an unknown field. */
function setNumber(column: Float64Array | undefined, row: number, value: number): void {
  if (column !== undefined) column[row] = value;
}

/** Returns true for a one-byte tag of a field with this wire type. Field number 0 is invalid. */
function isOfType(wireType: number, tag: number): boolean {
  return (tag & 7) === wireType && tag >= 8 && tag < TAGS_OF_A_BYTE;
}

function areEqual(bytes: Uint8Array, left: number, right: number, length: number): boolean {
  if (left === right) return true;
  for (let index = 0; index < length; index++) if (bytes[left + index] !== bytes[right + index]) return false;
  return true;
}
