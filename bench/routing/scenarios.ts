/** Pools and loads that policies are compared on. */
import { readFileSync } from 'node:fs';
import { type PoolServer, parsePool } from '../../src/prediction/commands/simulated-pool.ts';
import { createRandom } from '../../src/prediction/simulator/random-draws.ts';
import { createServer, type SimulatedServer } from '../../src/prediction/simulator/server.ts';
import {
  createWorkload,
  findBlockMistake,
  fromTrace,
  type SimulatedRequest,
  type TraceLine,
} from '../../src/prediction/simulator/workload.ts';

export interface Scenario {
  /** The name of the pool in tables. */
  readonly pool: string;
  readonly servers: readonly PoolServer[];
  /** The mean rate in requests a second. */
  readonly rate: number;
  readonly durationMs: number;
  /** Recorded arrivals instead of made-up bursts. */
  readonly trace: readonly TraceLine[] | undefined;
}

const POOLS: Readonly<Record<string, string>> = { like: 'medium:4', unlike: 'large:1,medium:2,small:1' };

export const POOL_NAMES = Object.keys(POOLS);

/** One of the pools above, or servers as `trivet simulate --servers` takes them. */
export function findPool(name: string): Pick<Scenario, 'pool' | 'servers'> {
  const list = POOLS[name];
  return { pool: list === undefined ? 'given' : name, servers: parsePool(list ?? name) };
}

const BLOCK_TOKENS = 512;
/** A table of step times does not say how much memory there is. */
const DEFAULT_KV_TOKENS = 100_000;

export function createPool({ servers }: Scenario): SimulatedServer[] {
  return servers.map(({ name, timer, kvCapacityTokens = DEFAULT_KV_TOKENS }) =>
    createServer({ name, timer, kvCapacityTokens, maxBatchTokens: 2048, maxSequences: 256, blockTokens: BLOCK_TOKENS }),
  );
}

export function createRequests(scenario: Scenario, seed: number): SimulatedRequest[] {
  const { trace, rate, durationMs } = scenario;
  if (trace !== undefined) return replay(trace, scenario, seed);
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

/**
 * Returns a part of the trace, another one for each seed, with times stretched so that this many requests arrive on average. Requests
 * that would fill more than half of the smallest server are left out.
 */
function replay(trace: readonly TraceLine[], { servers, rate, durationMs }: Scenario, seed: number) {
  const maxTokens = Math.min(...servers.map((server) => server.kvCapacityTokens ?? DEFAULT_KV_TOKENS)) / 2;
  const fitting = trace.filter((line) => line.input_length + line.output_length <= maxTokens);
  const count = Math.round((rate * durationMs) / 1000);
  const parts = Math.floor(fitting.length / count);
  if (parts === 0) throw new Error(`The trace must have ${count} requests that fit, got ${fitting.length}`);
  const lines = fitting.slice(((seed - 1) % parts) * count).slice(0, count);
  const spanMs = lines.at(-1)!.timestamp - lines[0]!.timestamp;
  return fromTrace(lines, durationMs / spanMs, BLOCK_TOKENS);
}

/** JSON lines as `trivet simulate --trace` takes them, or CSV `TIMESTAMP,ContextTokens,GeneratedTokens`. */
export function readTrace(path: string): TraceLine[] {
  const lines = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line !== '');
  if (!path.endsWith('.csv'))
    return lines.map((text, i) => {
      const line = JSON.parse(text) as TraceLine;
      const mistake = findBlockMistake(line, BLOCK_TOKENS);
      if (mistake !== undefined) throw new Error(`Cannot read the trace: ${mistake} at line ${i + 1}`);
      return line;
    });
  return lines.slice(1).map((line) => {
    const [at = '', input, output] = line.split(',');
    return { timestamp: Date.parse(`${at}Z`), input_length: Number(input), output_length: Number(output) };
  });
}
