/**
 * Times a step from tables that profilers measured. The tables have the time of each layer's operators by tokens in the step, of
 * attention by chunk, context and sequences, and of the output head by sequences. One layer is measured; a model repeats it.
 */
import { Failure } from '../../errors.ts';
import type { StepTimer } from './step-time.ts';

/** The tables; times in microseconds. A measurement that is repeated counts with its mean. */
export interface StepTables {
  /** `layer,tokens,time_us` */
  readonly dense: StepTable;
  /** `prefill_chunk,kv_prefill,n_decode,kv_decode,time_us`; contexts are those of one sequence. */
  readonly attention: StepTable;
  /** `layer,sequences,time_us` */
  readonly perSequence: StepTable;
}

export interface StepTable {
  /** The path of the table, for messages. */
  readonly path: string;
  readonly text: string;
}

/** Operators that run once a step, outside the repeated layer. */
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

function parseSeries(table: StepTable, axis: string): ReadonlyMap<string, Curve> {
  const rows = parseRows(table, ['layer', axis, 'time_us']);
  const layers = Map.groupBy(rows, ({ layer }) => layer);
  return new Map(
    [...layers].map(([layer, own]) => [layer, createCurve(own.map(({ numbers: [x, time] }) => [x!, time!]))]),
  );
}

/** Uses only rows of prefill alone and of decoding alone: a step with both takes the sum. */
function parseAttention(table: StepTable): { readonly prefill: Surface; readonly decode: Surface } {
  const columns = ['prefill_chunk', 'kv_prefill', 'n_decode', 'kv_decode', 'time_us'];
  const rows = parseRows(table, columns).map(({ numbers }) => numbers);
  const prefill = rows.filter((row) => row[0]! > 0 && row[2] === 0).map((row) => [row[0]!, row[1]!, row[4]!] as const);
  const decode = rows.filter((row) => row[0] === 0 && row[2]! > 0).map((row) => [row[2]!, row[3]!, row[4]!] as const);
  return { prefill: createSurface(prefill), decode: createSurface(decode) };
}

interface Row {
  /** Empty in a table without layers. */
  readonly layer: string;
  /** The other cells. */
  readonly numbers: readonly number[];
}

function parseRows({ path, text }: StepTable, columns: readonly string[]): Row[] {
  const [head = '', ...lines] = text.trim().split(/\r?\n/);
  if (head !== columns.join(','))
    throw new Failure(
      'invalid',
      `Cannot read the step table "${path}": its first line must be "${columns.join(',')}", got "${head}"`,
    );
  return lines.map((line, i) => {
    const cells = line.split(',');
    const wrong = columns.findIndex((column, at) => column !== 'layer' && !isAmount(cells[at]));
    if (wrong !== -1)
      throw new Failure(
        'invalid',
        `Cannot read the step table: ${columns[wrong]} must be a number of 0 or more, got "${cells[wrong] ?? ''}" at ${path}:${i + 2}`,
      );
    return columns[0] === 'layer'
      ? { layer: cells[0]!, numbers: cells.slice(1).map(Number) }
      : { layer: '', numbers: cells.map(Number) };
  });
}

function isAmount(cell = ''): boolean {
  return cell.trim() !== '' && Number.isFinite(Number(cell)) && Number(cell) >= 0;
}

type Point = readonly [x: number, y: number];

function createCurve(points: readonly Point[]): Curve {
  const measured = Map.groupBy(points, ([x]) => x);
  const sorted = [...measured].map(([x, same]): Point => [x, meanOf(same)]).sort((a, b) => a[0] - b[0]);
  return (x) => interpolate(sorted, x);
}

function meanOf(points: readonly Point[]): number {
  return points.reduce((total, [, y]) => total + y, 0) / points.length;
}

/** Interpolates linearly between points sorted by x, continues the first and last slope beyond them, and never returns less than 0. */
function interpolate(points: readonly Point[], x: number): number {
  const at = points.findIndex(([known]) => known >= x);
  const right = Math.max(1, at === -1 ? points.length - 1 : at);
  const [x0, y0] = points[right - 1] ?? [0, 0];
  const [x1, y1] = points[right] ?? [x0 + 1, y0];
  return Math.max(0, y0 + ((y1 - y0) * (x - x0)) / (x1 - x0));
}

function createSurface(points: readonly (readonly [x: number, y: number, z: number])[]): Surface {
  const byX = [...Map.groupBy(points, ([x]) => x)].sort((a, b) => a[0] - b[0]);
  const curves = byX.map(([x, row]) => [x, createCurve(row.map(([, y, z]) => [y, z]))] as const);
  return (x, y) =>
    interpolate(
      curves.map(([known, curve]) => [known, curve(y)]),
      x,
    );
}
