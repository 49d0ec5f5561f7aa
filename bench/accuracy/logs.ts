/** The recordings of the evaluation: files that the caller has, and pools that are simulated again with each run. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRandom, drawLogNormal } from '../../src/prediction/simulator/random-draws.ts';

export interface Log {
  readonly name: string;
  readonly paths: readonly string[];
  readonly format: 'requests' | undefined;
  readonly kvCapacityTokens: number | undefined;
}

/** `FILE`, or `FILE@480000` for a log of requests of a server whose KV cache holds this many tokens. */
export function describeFile(text: string): Log {
  const [, path = text, tokens] = /^(.+)@(\d+)$/.exec(text) ?? [];
  return {
    name: basename(path).replace(/\.[a-z]+$/, ''),
    paths: [path],
    format: tokens === undefined ? undefined : 'requests',
    kvCapacityTokens: tokens === undefined ? undefined : Number(tokens),
  };
}

const KV_TOKENS = 100_000;
const UNLIKE = '--servers large:1,medium:2,small:1';
const POISSON = '--policy round-robin --workload poisson';

interface Pool {
  readonly name: string;
  readonly options: string;
  readonly seed: number;
}

export const POOLS: readonly Pool[] = [
  { name: 'unlike', options: `${UNLIKE} --rate 8 --duration 400 ${POISSON}`, seed: 2 },
  { name: 'unlike, busy', options: `${UNLIKE} --rate 30 --duration 110 --policy least-requests`, seed: 1 },
  { name: 'like', options: `--servers medium:4 --rate 10 --duration 300 ${POISSON}`, seed: 5 },
  { name: 'like, busy', options: '--servers medium:4 --rate 36 --duration 90 --policy load+prefix', seed: 1 },
  { name: 'one, loaded', options: `--servers medium:1 --rate 12 --duration 120 ${POISSON}`, seed: 3 },
];

/** `moreSeed` is added to the seed of the pool: another value gives another, equally likely recording. */
export function simulatePool({ name, options, seed }: Pool, moreSeed: number, folder: string): Log {
  const path = join(folder, `${name.replaceAll(/\W+/g, '-')}.jsonl`);
  simulate(`${options} --seed ${seed + moreSeed}`, path);
  return describePool(name, [path]);
}

const LEVEL_RATES = [2, 4, 6, 8, 10, 12, 14];

/** Recordings of one server under seven loads. */
export function simulateLevels(moreSeed: number, folder: string): Log {
  const paths = LEVEL_RATES.map((rate, i) => {
    const path = join(folder, `level-${rate}.jsonl`);
    const start = new Date(Date.UTC(2026, 0, 1, i)).toISOString();
    const load = `--rate ${rate} --duration 60 --seed ${1 + i + moreSeed} --run ${rate} --start ${start}`;
    simulate(`--servers medium:1 ${load} ${POISSON}`, path);
    return path;
  });
  return describePool('one server, seven loads', paths);
}

const HERD = 2000;
const HERD_MS = 2000;
const AFTER_MS = 150_000;
const AFTER_PER_SECOND = 8;

/** Two thousand requests in the first two seconds of a mixed pool without any reports yet. */
export function simulateHerd(moreSeed: number, folder: string): Log {
  const random = createRandom(1 + moreSeed);
  const after = Math.round((AFTER_MS / 1000) * AFTER_PER_SECOND);
  const times = [
    ...Array.from({ length: HERD }, () => random() * HERD_MS),
    ...Array.from({ length: after }, () => HERD_MS + random() * AFTER_MS),
  ].sort((a, b) => a - b);
  const lines = times.map((timestamp) =>
    JSON.stringify({
      timestamp: Math.round(timestamp),
      input_length: Math.ceil(drawLogNormal(random, 600, 0.6)),
      output_length: Math.ceil(drawLogNormal(random, 100, 0.6)),
    }),
  );
  const trace = join(folder, 'herd-trace.jsonl');
  writeFileSync(trace, `${lines.join('\n')}\n`);
  const path = join(folder, 'herd.jsonl');
  simulate(`${UNLIKE} --trace ${trace} --policy round-robin`, path);
  return describePool('cold herd', [path]);
}

function describePool(name: string, paths: readonly string[]): Log {
  return { name: `simulated: ${name}`, paths, format: 'requests', kvCapacityTokens: KV_TOKENS };
}

function simulate(options: string, path: string): void {
  const trivet = fileURLToPath(new URL('../../bin/trivet.js', import.meta.url));
  const words = ['simulate', ...options.split(' '), '--format', 'requests', '--output', path];
  const { status, stderr } = spawnSync(process.execPath, [trivet, ...words], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`Cannot simulate "${options}": ${stderr}`);
}
