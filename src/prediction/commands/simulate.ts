/** Runs `trivet simulate`: simulates a pool and a routing policy, and writes recordings. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Command, InvalidArgumentError, Option } from 'commander';
import { checkWritable, formatTable, print, printJson } from '../../command-line/output.ts';
import { parsePositive } from '../../command-line/positive-number.ts';
import { durationIn, parseTime } from '../../command-line/time-option.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import { createLeastRequests, createLoadAndPrefix, createRoundRobin } from '../simulator/policies.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { DEFAULT_START, toObservationLine, toRequestLine } from '../simulator/recording.ts';
import { createServer } from '../simulator/server.ts';
import { type RoutingPolicy, type SimulatedObservation, simulate } from '../simulator/simulate.ts';
import { GPUS } from '../simulator/step-time.ts';
import { createWorkload, fromTrace, type SimulatedRequest, type WorkloadOptions } from '../simulator/workload.ts';
import { readTrace } from './read-trace.ts';
import { type PoolServer, parsePool, parseSlowdowns, planSlowdowns, type Slowdown } from './simulated-pool.ts';

interface SimulateOptions {
  readonly servers: readonly PoolServer[];
  readonly slow?: readonly Slowdown[];
  readonly kvCapacityTokens?: number;
  readonly workload: 'poisson' | 'bursts';
  readonly trace?: string;
  readonly traceUnit: 'ms' | 's';
  readonly timeScale: number;
  readonly blockTokens: number;
  readonly rate: number;
  readonly duration: number;
  readonly seed: number;
  readonly policy: keyof typeof POLICIES;
  readonly output?: string;
  readonly format: 'observations' | 'requests';
  readonly run: string;
  readonly start: number;
  readonly json?: boolean;
}

const POLICIES = {
  'round-robin': createRoundRobin,
  'least-requests': createLeastRequests,
  'load+prefix': createLoadAndPrefix,
};

/** The block size of the Mooncake traces; smaller blocks for our own workloads would only cost time. */
const DEFAULT_BLOCK_TOKENS = 512;
/** A block is at most as long as the longest prompt of a model. */
const MAX_BLOCK_TOKENS = 1_000_000;
const DEFAULT_KV_TOKENS = 100_000;

export function createSimulateCommand(): Command {
  return new Command('simulate')
    .description('Simulate a pool of vLLM-like servers behind a gateway, and write what it would have observed')
    .addOption(
      new Option(
        '--servers <list>',
        `the pool, as GPU:count,…; a GPU is one of ${GPUS.map((gpu) => gpu.name).join(', ')}, or a folder of measured step times`,
      )
        .default(parsePool('large:1,medium:2,small:1'), 'large:1,medium:2,small:1')
        .argParser(parsePool),
    )
    .option(
      '--slow <changes>',
      'make servers slower from a time on, as SERVER:FACTOR@TIME,… (large-0:2@5m: the first one, half as fast after 5 minutes; a number alone is seconds)',
      parseSlowdowns,
    )
    .option('--kv-capacity-tokens <tokens>', 'key-value memory of every server, in tokens', parsePositive)
    .addOption(new Option('--workload <kind>', 'how requests arrive').choices(['poisson', 'bursts']).default('bursts'))
    .option(
      '--trace <file>',
      'replay JSON lines {timestamp, input_length, output_length, hash_ids?} instead; --rate, --duration and --seed are then ignored',
    )
    .addOption(new Option('--trace-unit <unit>', 'the unit of timestamp').choices(['ms', 's']).default('ms'))
    .option(
      '--block-tokens <tokens>',
      'tokens of a block of the prefix cache, for which an id in hash_ids stands',
      wholeNumber(1, MAX_BLOCK_TOKENS),
      DEFAULT_BLOCK_TOKENS,
    )
    .option('--time-scale <factor>', 'stretch the times of the trace', parsePositive, 1)
    .option('--rate <requests>', 'mean requests a second', parsePositive, 12)
    .option(
      '--duration <duration>',
      'simulated time during which requests arrive, as 10m; a number alone is seconds',
      parseSeconds,
      600,
    )
    .option('--seed <number>', 'another seed gives another, equally likely run', parsePositive, 1)
    .addOption(
      new Option('--policy <name>', 'how the gateway routes').choices(Object.keys(POLICIES)).default('load+prefix'),
    )
    .option('--output <file>', 'write one JSON line a request')
    .addOption(
      new Option('--format <kind>', 'lines of --output: observations (input of `model train`) or a request-level log')
        .choices(['observations', 'requests'])
        .default('observations'),
    )
    .option('--run <name>', 'what a request-level log calls this recording', 'simulated')
    .addOption(
      new Option(
        '--start <time>',
        'when the recording begins, as 2026-03-01 or 2026-03-01T10:00:00Z: recordings of a pool must not overlap',
      )
        .default(Date.parse(DEFAULT_START), DEFAULT_START)
        .argParser(parseStart),
    )
    .option('--json', 'print the summary as JSON')
    .action(runSimulation);
}

/** A year: no simulation would finish a longer time. */
const parseSeconds = durationIn({ bareUnit: 's', minimum: 0.001, maximum: 31_536_000 });

function parseStart(text: string): number {
  const startMs = parseTime(text);
  if (startMs < FIRST_START_MS) throw new InvalidArgumentError('it must be a time after 2001.');
  return startMs;
}

/** Readers of recordings do not take smaller numbers for times of day. */
const FIRST_START_MS = 1e12;

async function runSimulation(options: SimulateOptions): Promise<void> {
  if (options.output !== undefined) await checkWritable(options.output);
  const requests = readRequests(options);
  const policy: RoutingPolicy = POLICIES[options.policy]();
  const capacities = options.servers.map(
    (server) => options.kvCapacityTokens ?? server.kvCapacityTokens ?? DEFAULT_KV_TOKENS,
  );
  const servers = options.servers.map(({ name, timer }, index) =>
    createServer({
      name,
      timer,
      kvCapacityTokens: capacities[index]!,
      maxBatchTokens: 2048,
      maxSequences: 256,
      blockTokens: options.blockTokens,
    }),
  );
  checkFits(requests, { smallest: Math.min(...capacities), blockTokens: options.blockTokens });
  const changes = planSlowdowns(options.servers, servers, options.slow ?? []);
  const observations = simulate({ servers, requests, policy, scrapeIntervalMs: 200, scrapeDelayMs: 50, changes });
  if (options.output !== undefined)
    await writeLines(
      options.output,
      observations.map((row) =>
        options.format === 'requests'
          ? toRequestLine(row, { run: options.run, originMs: options.start })
          : toObservationLine(row, options.start),
      ),
    );
  printSummary(observations, options);
}

function readRequests(options: SimulateOptions): SimulatedRequest[] {
  const { trace, traceUnit: unit, timeScale, blockTokens } = options;
  if (trace !== undefined) return fromTrace(readTrace(trace, { blockTokens, unit }), timeScale, blockTokens);
  const workload: WorkloadOptions = {
    kind: options.workload,
    requestsPerSecond: options.rate,
    durationMs: options.duration * 1000,
    medianInputTokens: 900,
    medianOutputTokens: 120,
    prefixGroups: 24,
    sharedShare: 0.5,
    blockTokens,
  };
  return createWorkload(workload, createRandom(options.seed));
}

/** Refuses a request larger than the KV cache of the smallest server: sent there, it would wait forever. */
function checkFits(
  requests: readonly SimulatedRequest[],
  { smallest, blockTokens }: { readonly smallest: number; readonly blockTokens: number },
): void {
  const tooLong = requests.find((request) => request.inputTokens + request.outputTokens + blockTokens > smallest);
  if (tooLong === undefined) return;
  const tokens = tooLong.inputTokens + tooLong.outputTokens;
  throw new Failure(
    'invalid',
    `Cannot simulate: request ${tooLong.id} needs ${tokens} tokens of memory, the smallest server has ${smallest}; leave that server out of --servers, or say --kv-capacity-tokens`,
  );
}

async function writeLines(path: string, lines: readonly object[]): Promise<void> {
  const stream = createWriteStream(path);
  for (const line of lines) if (!stream.write(`${JSON.stringify(line)}\n`)) await once(stream, 'drain');
  stream.end();
  await once(stream, 'close');
}

function printSummary(observations: readonly SimulatedObservation[], options: SimulateOptions): void {
  const ttft = summarize(observations.map(({ ttftMs }) => ttftMs));
  const tpot = summarize(observations.flatMap(({ tpotMs }) => tpotMs ?? []));
  if (options.json) {
    printJson({ policy: options.policy, requests: observations.length, ttft, tpot });
    return;
  }
  print(`${observations.length} requests over ${options.servers.length} servers, routed by ${options.policy}\n`);
  print(
    formatTable(
      ['milliseconds', 'p50', 'p95', 'p99'],
      [
        ['TTFT', ...Object.values(ttft)],
        ['TPOT', ...Object.values(tpot)],
      ],
    ),
  );
}

function summarize(values: readonly number[]): { p50: number; p95: number; p99: number } {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number) =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) * 10) / 10;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
