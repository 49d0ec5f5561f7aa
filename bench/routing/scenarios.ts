/** Pools and loads that policies are compared on. */
import { readFileSync } from 'node:fs';
import { createRandom } from '../../src/prediction/simulator/random.ts';
import { createServer, type SimulatedServer } from '../../src/prediction/simulator/server.ts';
import { createRooflineTimer, GPUS } from '../../src/prediction/simulator/step-time.ts';
import {
  createWorkload,
  fromTrace,
  type SimulatedRequest,
  type TraceLine,
} from '../../src/prediction/simulator/workload.ts';

export interface Scenario {
  readonly pool: keyof typeof POOLS;
  /** Requests a second, in the mean. */
  readonly rate: number;
  readonly durationMs: number;
  /** Recorded arrivals instead of made-up bursts. */
  readonly trace: readonly TraceLine[] | undefined;
}

export const POOLS = {
  like: ['medium', 'medium', 'medium', 'medium'],
  unlike: ['large', 'medium', 'medium', 'small'],
} as const;

const BLOCK_TOKENS = 512;

export function createPool({ pool }: Scenario): SimulatedServer[] {
  return POOLS[pool].map((name, i) => {
    const gpu = GPUS.find((candidate) => candidate.name === name)!;
    return createServer({
      name: `${name}-${i}`,
      timer: createRooflineTimer(gpu),
      kvCapacityTokens: gpu.kvCapacityTokens,
      maxBatchTokens: 2048,
      maxSequences: 256,
      blockTokens: BLOCK_TOKENS,
    });
  });
}

export function createRequests({ trace, rate, durationMs }: Scenario, seed: number): SimulatedRequest[] {
  if (trace !== undefined) return replay(trace, rate, durationMs);
  const workload = {
    kind: 'bursts',
    requestsPerSecond: rate,
    durationMs,
    medianInputTokens: 900,
    medianOutputTokens: 120,
    prefixGroups: 24,
    sharedShare: 0.5,
    blockTokens: BLOCK_TOKENS,
  } as const;
  return createWorkload(workload, createRandom(seed));
}

/** Longer ones do not fit the smallest server. */
const MAX_TOKENS = Math.min(...GPUS.map((gpu) => gpu.kvCapacityTokens)) / 2;

/** The beginning of the trace, its times stretched so that this many arrive in the mean. */
function replay(trace: readonly TraceLine[], rate: number, durationMs: number): SimulatedRequest[] {
  const fitting = trace.filter((line) => line.input_length + line.output_length <= MAX_TOKENS);
  const lines = fitting.slice(0, Math.round((rate * durationMs) / 1000));
  const spanMs = lines.at(-1)!.timestamp - lines[0]!.timestamp;
  return fromTrace(lines, durationMs / spanMs, BLOCK_TOKENS);
}

/** JSON lines as `trivet simulate --trace` takes them, or CSV `TIMESTAMP,ContextTokens,GeneratedTokens`. */
export function readTrace(path: string): TraceLine[] {
  const lines = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '');
  if (!path.endsWith('.csv')) return lines.map((line) => JSON.parse(line) as TraceLine);
  return lines.slice(1).map((line) => {
    const [at = '', input, output] = line.split(',');
    return { timestamp: Date.parse(`${at}Z`), input_length: Number(input), output_length: Number(output) };
  });
}
