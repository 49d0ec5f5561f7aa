/**
 * Times a step from tables that profilers measured. The tables have the time of each layer's operators by tokens in the step, of
 * attention by chunk, context and sequences, and of the output head by sequences. One layer is measured; a model repeats it.
 */
import { Failure } from '../../errors.ts';
import type { StepTimer } from './step-time.ts';

/** The texts of the tables; times in microseconds. */
export interface StepTables {
  /** `layer,tokens,time_us` */
  readonly dense: string;
  /** `prefill_chunk,kv_prefill,n_decode,kv_decode,time_us`; contexts are those of one sequence. */
  readonly attention: string;
  /** `layer,sequences,time_us` */
  readonly perSequence: string;
}

/** Operators outside the repeated layer. */
const ONCE_A_STEP = ['embedding', 'final_layernorm'];
/** A layer of a decoder normalizes before attention and before the feed-forward block. */
const TWICE_A_LAYER = ['layernorm'];
const OVERHEAD_MS = 1.5;

export function createTableTimer(tables: StepTables, layers: number): StepTimer {
  const dense = parseSeries(tables.dense, 'tokens');
  const perSequence = parseSeries(tables.perSequence, 'sequences');
  const { prefill, decode } = parseAttention(tables.attention);
  return (load) => {
    const tokens = load.prefillTokens + load.decodeSequences;
    const sequences = load.prefillSequences + load.decodeSequences;
    const denseUs = sum(dense, (curve, name) => curve(tokens) * repetitions(name, layers));
    const headUs = sum(perSequence, (curve) => curve(sequences));
    const chunkContext =
      load.prefillTokens === 0
        ? 0
        : Math.max(0, load.prefillAttention / load.prefillTokens - load.prefillTokens / load.prefillSequences / 2);
    const prefillUs = load.prefillTokens === 0 ? 0 : prefill(load.prefillTokens, chunkContext);
    const decodeUs =
      load.decodeSequences === 0 ? 0 : decode(load.decodeSequences, load.decodeContextTokens / load.decodeSequences);
    const ms = OVERHEAD_MS + (denseUs + headUs + layers * (prefillUs + decodeUs)) / 1000;
    const floorUs = sum(dense, (curve, name) => curve(1) * repetitions(name, layers));
    return {
      ms,
      computeShare: Math.min(1, 1 - floorUs / (ms * 1000)),
      bandwidthShare: Math.min(1, (floorUs + layers * decodeUs) / (ms * 1000)),
    };
  };
}

function repetitions(name: string, layers: number): number {
  if (ONCE_A_STEP.includes(name)) return 1;
  return TWICE_A_LAYER.includes(name) ? 2 * layers : layers;
}

type Curve = (x: number) => number;
type Surface = (x: number, y: number) => number;

function sum(curves: ReadonlyMap<string, Curve>, value: (curve: Curve, name: string) => number): number {
  let total = 0;
  for (const [name, curve] of curves) total += value(curve, name);
  return total;
}

function parseSeries(text: string, axis: string): ReadonlyMap<string, Curve> {
  const points = new Map<string, [number, number][]>();
  for (const row of parseRows(text, ['layer', axis, 'time_us'])) {
    const [name = '', x, time] = row;
    points.set(name, [...(points.get(name) ?? []), [Number(x), Number(time)]]);
  }
  return new Map([...points].map(([name, pairs]) => [name, createCurve(pairs)]));
}

/** Chunks and decoding sequences of one step are taken as if they ran after each other: the tables' pure rows. */
function parseAttention(text: string): { readonly prefill: Surface; readonly decode: Surface } {
  const rows = parseRows(text, ['prefill_chunk', 'kv_prefill', 'n_decode', 'kv_decode', 'time_us']).map((row) =>
    row.map(Number),
  );
  const prefill = rows.filter((row) => row[0]! > 0 && row[2] === 0).map((row) => [row[0]!, row[1]!, row[4]!] as const);
  const decode = rows.filter((row) => row[0] === 0 && row[2]! > 0).map((row) => [row[2]!, row[3]!, row[4]!] as const);
  return { prefill: createSurface(prefill), decode: createSurface(decode) };
}

function parseRows(text: string, columns: readonly string[]): string[][] {
  const [head = '', ...lines] = text.trim().split(/\r?\n/);
  if (head !== columns.join(',')) {
    throw new Failure(
      'invalid',
      `Cannot read the step table: its first line must be "${columns.join(',')}", got "${head}"`,
    );
  }
  return lines.map((line) => line.split(','));
}

/** Piecewise linear through the points, going on with the last slope beyond them, never below zero. */
function createCurve(points: readonly (readonly [number, number])[]): Curve {
  const sorted = [...points].sort((a, b) => a[0] - b[0]);
  return (x) => {
    const at = sorted.findIndex(([known]) => known >= x);
    const right = Math.max(1, at === -1 ? sorted.length - 1 : at);
    const [x0, y0] = sorted[right - 1] ?? [0, 0];
    const [x1, y1] = sorted[right] ?? [x0 + 1, y0];
    return Math.max(0, y0 + ((y1 - y0) * (x - x0)) / (x1 - x0));
  };
}

function createSurface(points: readonly (readonly [number, number, number])[]): Surface {
  const byX = Map.groupBy(points, ([x]) => x);
  const curves = [...byX].map(([x, row]) => [x, createCurve(row.map(([, y, z]) => [y, z]))] as const);
  return (x, y) => createCurve(curves.map(([known, curve]) => [known, curve(y)]))(x);
}
