/**
 * A PredictRequest as bytes, decoded straight into columns without an object in between: this is the hot path, and why
 * there is no generated code in it. Accepts what the official parsers accept.
 */
import { WireReader } from '../grpc/wire-reader.ts';
import type { PredictColumns } from './columns.ts';
import { addRow, startColumns } from './predict-call.ts';

/** From so many distinct pod types on, a map finds one faster than a look at each. */
const MANY_POD_TYPES = 8;

/** Decodes requests, one after another, into columns that it reuses. Not for two calls at the same time. */
export class PredictRequestDecoder {
  readonly #columns: PredictColumns;
  readonly #reader = new WireReader(new Uint8Array(0));
  /** Where the distinct pod types of this call lie in its bytes. */
  readonly #podTypeStart: number[] = [];
  readonly #podTypeLength: number[] = [];
  /** By name, filled only when there are many. */
  readonly #podTypeIndexes = new Map<string, number>();
  /** Clients ask for the same model again and again: its name is made into a string once. */
  #knownModel = '';
  #knownModelBytes: Uint8Array = new Uint8Array(0);

  /** `columns` must have room for `MAX_INPUTS`. */
  constructor(columns: PredictColumns) {
    this.#columns = columns;
  }

  /** Fills the columns and returns the target model. Throws `invalid` for bytes that are not a PredictRequest. */
  decode(request: Uint8Array): string {
    const reader = this.#reader;
    reader.reset(request);
    startColumns(this.#columns, request);
    this.#podTypeStart.length = 0;
    this.#podTypeLength.length = 0;
    this.#podTypeIndexes.clear();
    let targetModel = '';
    while (reader.position < reader.end) {
      const tag = reader.readTag();
      if (tag === 0x12) this.#decodeInput(reader);
      else if (tag === 0x0a) targetModel = this.#decodeTargetModel(reader);
      else reader.skip(tag);
    }
    return targetModel;
  }

  #decodeInput(reader: WireReader): void {
    const columns = this.#columns;
    const row = addRow(columns);
    let podTypeStart = 0;
    let podTypeLength = 0;
    const length = reader.readLength();
    const outerEnd = reader.end;
    reader.end = reader.position + length;
    while (reader.position < reader.end) {
      const tag = reader.readTag();
      switch (tag) {
        case 0x08:
          columns.inputId[row] = reader.readInt32();
          break;
        case 0x12:
          podTypeLength = reader.passString();
          podTypeStart = reader.position - podTypeLength;
          break;
        case 0x18:
          columns.inputTokenLength[row] = reader.readInt32();
          break;
        case 0x21:
          columns.prefixCacheScore[row] = reader.readDouble();
          break;
        case 0x28:
          columns.numRequestWaiting[row] = reader.readInt32();
          break;
        case 0x30:
          columns.numRequestRunning[row] = reader.readInt32();
          break;
        case 0x39:
          columns.kvCacheUsage[row] = reader.readDouble();
          break;
        case 0x40:
          columns.inflightTokens[row] = reader.readInt32();
          break;
        case 0x49:
          columns.hbmUtilization[row] = reader.readDouble();
          break;
        case 0x51:
          columns.aiCoreUtilization[row] = reader.readDouble();
          break;
        case 0x59:
          columns.bandwidthUtilization[row] = reader.readDouble();
          break;
        case 0x62: {
          const ipLength = reader.passString();
          columns.serverIpStart[row] = reader.position - ipLength;
          columns.serverIpLength[row] = ipLength;
          break;
        }
        default:
          reader.skip(tag);
      }
    }
    reader.end = outerEnd;
    columns.podType[row] = this.#findPodType(podTypeStart, podTypeLength, row);
  }

  /** Index of a pod type among those of this call. Most rows have the one of the row before. */
  #findPodType(start: number, length: number, row: number): number {
    const previous = row === 0 ? -1 : this.#columns.podType[row - 1]!;
    if (previous >= 0 && this.#isPodType(previous, start, length)) return previous;
    const { podTypes } = this.#columns;
    if (podTypes.length >= MANY_POD_TYPES) return this.#findAmongMany(start, length);
    for (let index = 0; index < podTypes.length; index++) if (this.#isPodType(index, start, length)) return index;
    return this.#addPodType(this.#reader.readUtf8(start, length), start, length);
  }

  /** Comparing with each would take time that grows with the square of the inputs. */
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
    this.#podTypeStart.push(start);
    this.#podTypeLength.push(length);
    return this.#columns.podTypes.push(podType) - 1;
  }

  #isPodType(index: number, start: number, length: number): boolean {
    if (this.#podTypeLength[index] !== length) return false;
    return areEqual(this.#reader.bytes, this.#podTypeStart[index]!, start, length);
  }

  #decodeTargetModel(reader: WireReader): string {
    const length = reader.passString();
    const start = reader.position - length;
    const known = this.#knownModelBytes;
    if (known.length === length && matches(reader.bytes, start, known)) return this.#knownModel;
    this.#knownModel = reader.readUtf8(start, length);
    this.#knownModelBytes = reader.bytes.slice(start, start + length);
    return this.#knownModel;
  }
}

function areEqual(bytes: Uint8Array, left: number, right: number, length: number): boolean {
  if (left === right) return true;
  for (let index = 0; index < length; index++) if (bytes[left + index] !== bytes[right + index]) return false;
  return true;
}

function matches(bytes: Uint8Array, start: number, expected: Uint8Array): boolean {
  for (let index = 0; index < expected.length; index++) if (bytes[start + index] !== expected[index]) return false;
  return true;
}
