/**
 * Encodes a row of the shared log: what one process learned in about a second. A row is a JSON header with names and lengths,
 * then the sums as 32-bit floats. The writer applies the rounded values of the row too, so that all processes have the same sums.
 */
import { PREDICTION_TARGETS } from '../schema/observation-table.ts';
import type { GroupEntry, ModelEntries } from './shared-group.ts';
import { GROUP_KINDS, type Residuals } from './sum-groups.ts';

export interface NamedEntries extends ModelEntries {
  readonly targetModel: string;
}

/** One row of the log. */
export interface SharedChunk {
  readonly models: readonly NamedEntries[];
  /** When the first of its events was observed, by the writer's clock. */
  readonly sinceMs: number;
}

/** The number of sums, and the numbers of residuals in units of the spread, as logarithms, and in milliseconds. */
type Lengths = [sums: number, scaled: number, logRatios: number, excesses: number];
type EntryHeader = [
  kind: number,
  target: number,
  slot: string | null,
  server: string,
  events: number,
  certainty: number,
  ...lengths: Lengths,
];

interface Header {
  readonly sinceMs: number;
  readonly models: readonly {
    readonly targetModel: string;
    readonly version: string;
    readonly entries: readonly EntryHeader[];
  }[];
}

const LENGTH_BYTES = 4;
const FLOAT_BYTES = 4;

export function encodeChunk({ models, ...rest }: SharedChunk): Uint8Array {
  const header: Header = {
    ...rest,
    models: models.map(({ targetModel, version, entries }) => {
      return { targetModel, version, entries: entries.map(describeEntry) };
    }),
  };
  const text = Buffer.from(JSON.stringify(header));
  const floats = Float32Array.from(models.flatMap(({ entries }) => entries.flatMap(listFloats)));
  const bytes = Buffer.alloc(LENGTH_BYTES + text.length + floats.byteLength);
  bytes.writeUInt32LE(text.length);
  text.copy(bytes, LENGTH_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset + LENGTH_BYTES + text.length);
  for (const [i, value] of floats.entries()) view.setFloat32(i * FLOAT_BYTES, value, true);
  return bytes;
}

function describeEntry({ name, events, certainty, sums, residuals }: GroupEntry): EntryHeader {
  const { kind, target, slot, server } = name;
  const { scaled = [], logRatios = [], excessesMs = [] } = residuals ?? {};
  const lengths: Lengths = [sums.length, scaled.length, logRatios.length, excessesMs.length];
  return [GROUP_KINDS.indexOf(kind), PREDICTION_TARGETS.indexOf(target), slot, server, events, certainty, ...lengths];
}

function listFloats({ sums, residuals }: GroupEntry): number[] {
  if (residuals === undefined) return [...sums];
  return [...sums, ...residuals.scaled, ...residuals.logRatios, ...residuals.excessesMs];
}

/** Decodes a row, without the groups that this release does not know. */
export function decodeChunk(bytes: Uint8Array): SharedChunk {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const floatsStart = LENGTH_BYTES + view.getUint32(0, true);
  const text = Buffer.from(bytes.subarray(LENGTH_BYTES, floatsStart)).toString();
  const { models, ...rest } = JSON.parse(text) as Header;
  let at = floatsStart;
  const readFloats = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => {
      at += FLOAT_BYTES;
      return view.getFloat32(at - FLOAT_BYTES, true);
    });
  return {
    ...rest,
    models: models.map(({ entries, ...model }) => ({
      ...model,
      entries: entries.map((entry) => readEntry(entry, readFloats)).filter((entry) => entry !== undefined),
    })),
  };
}

function readEntry(header: EntryHeader, readFloats: (count: number) => Float32Array): GroupEntry | undefined {
  const [kindIndex, targetIndex, slot, server, events, certainty, ...lengths] = header;
  const [sumCount, scaledCount, logRatioCount, excessCount] = lengths;
  const kind = GROUP_KINDS[kindIndex];
  const target = PREDICTION_TARGETS[targetIndex];
  const sums = readFloats(sumCount);
  const [scaled, logRatios, excessesMs] = [scaledCount, logRatioCount, excessCount].map((count) =>
    Array.from(readFloats(count)),
  ) as [number[], number[], number[]];
  // A later release has more kinds and targets.
  if (kind === undefined || target === undefined) return undefined;
  const residuals: Residuals | undefined = kind === 'slot' ? { scaled, logRatios, excessesMs } : undefined;
  return { name: { kind, target, slot, server }, events, certainty, sums, residuals };
}
