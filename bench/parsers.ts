/**
 * Checks that parse time is linear in the size: for each parser of untrusted bytes it compares the worst input of the maximum size
 * with one of half that size, first in this process, then through sockets of the real program.
 *
 * `node bench/parsers.ts [--only TEXT]`
 *
 * Exits with 1 if the whole takes more than three times as long as the half: medians, in turns, after a warm-up. A miss is
 * measured up to three times. This includes native code; `test/linear-work.test.ts` counts the work of our own code.
 */
import { formatTable } from '../src/command-line/output.ts';
import { hostileInputs, settle } from '../test/support/rules/hostile-input.ts';
import { openHostileRequests } from './parsers/hostile-requests.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({ options: { only: { type: 'string', default: '' } } });

const MAX_RATIO = 3;
const ROUNDS = 3;
const TRIES = 3;
/** Shorter work is repeated until it takes this long. */
const MIN_SAMPLE_MS = 1;

/** One input in two sizes. Each resolves with how long it took. */
interface Measurement {
  readonly name: string;
  readonly bytes: number;
  readonly half: () => Promise<number>;
  readonly whole: () => Promise<number>;
}

interface Result {
  readonly name: string;
  readonly bytes: number;
  readonly halfMs: number;
  readonly wholeMs: number;
}

async function measureBest(measurement: Measurement): Promise<Result> {
  let best = await measure(measurement);
  for (let tries = 1; tries < TRIES && ratioOf(best) > MAX_RATIO; tries++) {
    const next = await measure(measurement);
    if (ratioOf(next) < ratioOf(best)) best = next;
  }
  process.stderr.write(`${describe(best).join('  ')}\n`);
  return best;
}

async function measure({ name, bytes, half, whole }: Measurement): Promise<Result> {
  const halves: number[] = [];
  const wholes: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const [halfMs, wholeMs] = [await half(), await whole()];
    // The first round warms up.
    if (round === 0) continue;
    halves.push(halfMs);
    wholes.push(wholeMs);
  }
  return { name, bytes, halfMs: median(halves), wholeMs: median(wholes) };
}

function ratioOf({ halfMs, wholeMs }: Result): number {
  return wholeMs / halfMs;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

/** Measures the time of one run, from as many runs as fill a sample. */
async function time(run: () => unknown, times: number): Promise<number> {
  const startedMs = performance.now();
  for (let index = 0; index < times; index++) await settle(run);
  return (performance.now() - startedMs) / times;
}

async function listInProcess(): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (const { parser, input, maxBytes, prepare } of hostileInputs) {
    const name = `${parser}: ${input}`;
    if (!name.includes(flags.only)) continue;
    const [half, whole] = [prepare(Math.floor(maxBytes / 2)), prepare(maxBytes)];
    const times = Math.ceil(MIN_SAMPLE_MS / Math.max(0.001, await time(half, 3)));
    measurements.push({ name, bytes: maxBytes, half: () => time(half, times), whole: () => time(whole, times) });
  }
  return measurements;
}

function describe(result: Result): string[] {
  const { name, bytes, halfMs, wholeMs } = result;
  const ratio = ratioOf(result);
  const missed = ratio > MAX_RATIO ? 'more than linear' : '';
  return [name, String(bytes), halfMs.toFixed(3), wholeMs.toFixed(3), ratio.toFixed(1), missed];
}

const results: Result[] = [];
for (const measurement of await listInProcess()) results.push(await measureBest(measurement));
await using requests = await openHostileRequests();
for (const request of requests.list) if (request.name.includes(flags.only)) results.push(await measureBest(request));
process.stdout.write(formatTable(['input', 'bytes', 'ms, half', 'ms, whole', 'ratio', ''], results.map(describe)));
const missed = results.filter((result) => ratioOf(result) > MAX_RATIO);
process.stdout.write(`${missed.length} of ${results.length} take more than linear time\n`);
if (missed.length > 0) process.exitCode = 1;
