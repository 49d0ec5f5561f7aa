/** Generates the requests of a simulation: Poisson, bursts, or a recorded trace. */
import { drawExponential, drawLogNormal, type Random } from './random-draws.ts';

export interface SimulatedRequest {
  readonly id: number;
  readonly arrivalMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Ids of the prompt's leading full blocks; prompts with the same beginning have the same first ids. */
  readonly blocks: readonly number[];
}

export interface WorkloadOptions {
  readonly kind: 'poisson' | 'bursts';
  readonly requestsPerSecond: number;
  readonly durationMs: number;
  readonly medianInputTokens: number;
  readonly medianOutputTokens: number;
  /** The number of groups of prompts with the same beginning (a system prompt, a conversation); `sharedShare` is its share of a prompt. */
  readonly prefixGroups: number;
  readonly sharedShare: number;
  readonly blockTokens: number;
}

/** Bursts alternate every 20 s between 1.75 and 0.25 times the mean rate. */
const BURST_PERIOD_MS = 20_000;

export function createWorkload(options: WorkloadOptions, random: Random): SimulatedRequest[] {
  const requests: SimulatedRequest[] = [];
  let nowMs = 0;
  while (true) {
    nowMs += drawExponential(random, 1000 / (options.requestsPerSecond * rateFactor(options.kind, nowMs)));
    if (nowMs >= options.durationMs) return requests;
    requests.push(drawRequest(options, requests.length, nowMs, random));
  }
}

function rateFactor(kind: WorkloadOptions['kind'], nowMs: number): number {
  if (kind === 'poisson') return 1;
  return Math.floor(nowMs / BURST_PERIOD_MS) % 2 === 0 ? 1.75 : 0.25;
}

const MAX_BLOCKS = 1_000_000;

function drawRequest(options: WorkloadOptions, id: number, arrivalMs: number, random: Random): SimulatedRequest {
  const inputTokens = Math.max(16, Math.round(drawLogNormal(random, options.medianInputTokens, 0.8)));
  const outputTokens = Math.max(1, Math.round(drawLogNormal(random, options.medianOutputTokens, 0.7)));
  const blockCount = Math.floor(inputTokens / options.blockTokens);
  const shared = Math.round(blockCount * options.sharedShare);
  const group = Math.floor(random() * options.prefixGroups);
  const blocks = Array.from({ length: blockCount }, (_, index) =>
    index < shared ? -(group * MAX_BLOCKS + index + 1) : id * MAX_BLOCKS + index,
  );
  return { id, arrivalMs, inputTokens, outputTokens, blocks };
}

/** A line of a trace, as in the Mooncake traces: `{timestamp (ms), input_length, output_length, hash_ids?}`. */
export interface TraceLine {
  readonly timestamp: number;
  readonly input_length: number;
  readonly output_length: number;
  readonly hash_ids?: readonly number[];
}

/** Returns undefined if the line has no ids, or as many as blocks of this size. Some traces leave out the last block, others keep it. */
export function findBlockMistake({ input_length, hash_ids = [] }: TraceLine, blockTokens: number): string | undefined {
  const blocks = Math.ceil(input_length / blockTokens);
  if (hash_ids.length === 0 || Math.abs(hash_ids.length - blocks) <= 1) return undefined;
  return `hash_ids must be ${blocks} for ${input_length} tokens in blocks of ${blockTokens}, got ${hash_ids.length}`;
}

/** A `timeScale` of 0.5 replays twice as fast. Each id of the trace is a full block of `blockTokens`. */
export function fromTrace(lines: readonly TraceLine[], timeScale: number, blockTokens: number): SimulatedRequest[] {
  const startMs = Math.min(...lines.slice(0, 1).map((line) => line.timestamp));
  return lines.map((line, id) => ({
    id,
    arrivalMs: (line.timestamp - startMs) * timeScale,
    inputTokens: Math.max(1, line.input_length),
    outputTokens: Math.max(1, line.output_length),
    blocks: (line.hash_ids ?? []).slice(0, Math.floor(line.input_length / blockTokens)),
  }));
}
