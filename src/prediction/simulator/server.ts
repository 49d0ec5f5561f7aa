/**
 * Simulates a vLLM-like server: continuous batching, chunked prefill, prefix cache, preemption. A step has a token budget,
 * and running sequences come first; when memory is full, the newest sequence is preempted and computed again. It follows Kwon et al. 2023
 * (PagedAttention) and Agrawal et al. 2024 (Sarathi-Serve).
 */

import { createPrefixCache } from './prefix-cache.ts';
import {
  type Batch,
  completeStep,
  createSequence,
  forkBatch,
  isEmpty,
  measureLoad,
  type StepResult,
  scheduleStep,
  targetTokens,
} from './running-batch.ts';
import type { StepTimer } from './step-time.ts';
import { averageUntil, changeUse, IDLE, type Shares, type Utilization } from './utilization.ts';
import type { SimulatedRequest } from './workload.ts';

export interface ServerOptions {
  readonly name: string;
  readonly timer: StepTimer;
  readonly kvCapacityTokens: number;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly blockTokens: number;
}

/** What a scrape of the server's metrics shows. */
export interface ServerMetrics extends Shares {
  readonly waiting: number;
  readonly running: number;
  /** In [0, 1]. */
  readonly kvCacheUsage: number;
  /** Prompt tokens not yet computed, and context tokens of decoding sequences. */
  readonly inflightTokens: number;
}

export interface SimulatedServer {
  readonly name: string;
  submit(request: SimulatedRequest, nowMs: number): void;
  /** Starts a step if there is work, and returns when it ends; undefined when idle. */
  beginStep(nowMs: number): number | undefined;
  endStep(nowMs: number): StepResult;
  /** Returns when the step under way ends; undefined between steps. */
  stepEndsMs(): number | undefined;
  metrics(nowMs: number): ServerMetrics;
  /** Returns the share of the prompt's tokens that are cached now, in [0, 1]. Tokens after the last full block are never cached. */
  prefixScore(request: SimulatedRequest): number;
  /** Changes the speed from the next step on, to simulate drift. */
  setTimer(timer: StepTimer): void;
  /** Returns an independent copy in the same state. */
  fork(): SimulatedServer;
}

export function createServer(options: ServerOptions): SimulatedServer {
  return buildServer(options, {
    cache: createPrefixCache(options.kvCapacityTokens, options.blockTokens),
    waiting: [],
    running: [],
    timer: options.timer,
    stepEndsMs: undefined,
    utilization: { atMs: 0, average: IDLE, used: IDLE },
  });
}

interface ServerContent extends Batch {
  timer: StepTimer;
  stepEndsMs: number | undefined;
  utilization: Utilization;
}

function buildServer(options: ServerOptions, content: ServerContent): SimulatedServer {
  return {
    name: options.name,
    submit: (request, nowMs) => void content.waiting.push(createSequence(request, nowMs)),
    beginStep: (nowMs) => beginStep(content, options, nowMs),
    endStep(nowMs) {
      content.stepEndsMs = undefined;
      content.utilization = changeUse(content.utilization, nowMs, IDLE);
      return completeStep(content, nowMs);
    },
    stepEndsMs: () => content.stepEndsMs,
    metrics: (nowMs) => readMetrics(content, nowMs),
    prefixScore: ({ blocks, inputTokens }) => (content.cache.countMatching(blocks) * options.blockTokens) / inputTokens,
    setTimer: (next) => {
      content.timer = next;
    },
    fork: () => buildServer(options, { ...content, ...forkBatch(content) }),
  };
}

function beginStep(content: ServerContent, options: ServerOptions, nowMs: number): number | undefined {
  if (content.stepEndsMs !== undefined || isEmpty(content)) return undefined;
  scheduleStep(content, options);
  if (content.running.every((sequence) => sequence.scheduled === 0)) return undefined;
  const time = content.timer(measureLoad(content.running));
  content.utilization = changeUse(content.utilization, nowMs, time);
  content.stepEndsMs = nowMs + time.ms;
  return content.stepEndsMs;
}

function readMetrics(content: ServerContent, nowMs: number): ServerMetrics {
  const { cache, waiting, running } = content;
  return {
    waiting: waiting.length,
    running: running.length,
    kvCacheUsage: cache.usedTokens() / cache.capacityTokens,
    inflightTokens: [...waiting, ...running].reduce((sum, sequence) => sum + targetTokens(sequence), 0),
    ...averageUntil(content.utilization, nowMs),
  };
}
