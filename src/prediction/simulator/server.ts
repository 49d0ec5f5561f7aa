/**
 * A vLLM-like server: continuous batching with a token budget a step, chunked prefill, decoding first, a block prefix
 * cache, and preemption by recomputation of the newest sequence when the memory is full.
 * After Kwon et al. 2023 (PagedAttention) and Agrawal et al. 2024 (Sarathi-Serve).
 */
import { createPrefixCache, type PrefixCache } from './prefix-cache.ts';
import type { StepTimer } from './step-time.ts';
import type { SimulatedRequest } from './workload.ts';

export interface ServerOptions {
  readonly name: string;
  readonly timer: StepTimer;
  readonly kvCapacityTokens: number;
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly blockTokens: number;
}

/** What a metrics scrape of the server would show. */
export interface ServerMetrics {
  readonly waiting: number;
  readonly running: number;
  /** In [0, 1]. */
  readonly kvCacheUsage: number;
  /** Prompt tokens not yet computed and context tokens of what decodes. */
  readonly inflightTokens: number;
  readonly computeShare: number;
  readonly bandwidthShare: number;
}

/** What became of a request, as the server's client saw it. */
export interface Outcome {
  readonly request: SimulatedRequest;
  readonly dispatchedMs: number;
  readonly firstTokenMs: number;
  readonly finishedMs: number;
  readonly preemptions: number;
}

interface Sequence {
  readonly request: SimulatedRequest;
  readonly dispatchedMs: number;
  computedTokens: number;
  generated: number;
  ownTokens: number;
  firstTokenMs: number;
  preemptions: number;
  /** Tokens this step runs for it. */
  scheduled: number;
}

export interface StepResult {
  readonly firstTokens: readonly { readonly request: SimulatedRequest; readonly atMs: number }[];
  readonly finished: readonly Outcome[];
}

export interface SimulatedServer {
  readonly name: string;
  submit(request: SimulatedRequest, nowMs: number): void;
  /** Starts a step if there is work; the time at which it ends, or undefined when idle. */
  beginStep(nowMs: number): number | undefined;
  endStep(nowMs: number): StepResult;
  /** When the step under way ends; undefined between steps. */
  stepEndsMs(): number | undefined;
  metrics(): ServerMetrics;
  /** Share of the prompt's blocks that its cache holds now, in [0, 1]. */
  prefixScore(request: SimulatedRequest): number;
  /** Replaces the speed from the next step on: a server that drifts. */
  setTimer(timer: StepTimer): void;
  /** The same server in the same state, going its own way from now on. */
  fork(): SimulatedServer;
}

interface ServerContent {
  readonly cache: PrefixCache;
  readonly waiting: Sequence[];
  readonly running: Sequence[];
  timer: StepTimer;
  stepEndsMs: number | undefined;
  computeShare: number;
  bandwidthShare: number;
}

export function createServer(options: ServerOptions): SimulatedServer {
  return buildServer(options, {
    cache: createPrefixCache(options.kvCapacityTokens, options.blockTokens),
    waiting: [],
    running: [],
    timer: options.timer,
    stepEndsMs: undefined,
    computeShare: 0,
    bandwidthShare: 0,
  });
}

function buildServer(options: ServerOptions, content: ServerContent): SimulatedServer {
  const { cache, waiting, running } = content;

  /** The prompt and, after a preemption, what had been generated: all that must be computed before the next token. */
  const targetTokens = (sequence: Sequence) => sequence.request.inputTokens + sequence.generated;

  /** Everything the sequence holds goes back; its own tokens must be computed again. */
  function preempt(sequence: Sequence): void {
    cache.release(sequence.request.blocks, sequence.ownTokens, sequence.computedTokens);
    Object.assign(sequence, { computedTokens: 0, ownTokens: 0, scheduled: 0, preemptions: sequence.preemptions + 1 });
    running.splice(running.indexOf(sequence), 1);
    waiting.unshift(sequence);
  }

  /** A decoding sequence needs room for one token more; the newest ones make way for the older. */
  function ensureRoomForToken(sequence: Sequence): boolean {
    while (!cache.acquire([], 1)) {
      const newest = running.at(-1);
      if (newest === undefined) return false;
      preempt(newest);
      if (newest === sequence) return false;
    }
    sequence.ownTokens++;
    return true;
  }

  function scheduleRunning(budget: number): number {
    let left = budget;
    // By position: making room takes the newest ones out, at the end.
    for (let i = 0; i < running.length; i++) {
      const sequence = running[i]!;
      const remaining = targetTokens(sequence) - sequence.computedTokens;
      const isDecoding = sequence.generated > 0 && remaining <= 1;
      if (left <= 0 || (isDecoding && !ensureRoomForToken(sequence))) continue;
      sequence.scheduled = Math.min(remaining, left);
      left -= sequence.scheduled;
    }
    return left;
  }

  function admitWaiting(budget: number): void {
    let left = budget;
    while (left > 0 && running.length < options.maxSequences) {
      const [next] = waiting;
      if (next === undefined) return;
      const { blocks } = next.request;
      const cached = Math.min(cache.countMatching(blocks) * options.blockTokens, targetTokens(next) - 1);
      const own = Math.max(0, targetTokens(next) - blocks.length * options.blockTokens);
      if (!cache.acquire(blocks, own)) return;
      waiting.shift();
      next.ownTokens = own;
      next.computedTokens = cached;
      next.scheduled = Math.min(targetTokens(next) - cached, left);
      left -= next.scheduled;
      running.push(next);
    }
  }

  function measureStep(): number {
    const load = {
      prefillTokens: 0,
      prefillAttention: 0,
      prefillSequences: 0,
      decodeSequences: 0,
      decodeContextTokens: 0,
    };
    for (const sequence of running) {
      if (sequence.scheduled === 0) continue;
      const context = sequence.computedTokens + sequence.scheduled;
      if (sequence.generated > 0 && sequence.scheduled === 1) {
        load.decodeSequences++;
        load.decodeContextTokens += context;
      } else {
        load.prefillSequences++;
        load.prefillTokens += sequence.scheduled;
        load.prefillAttention += sequence.scheduled * (sequence.computedTokens + sequence.scheduled / 2);
      }
    }
    const time = content.timer(load);
    content.computeShare += 0.1 * (time.computeShare - content.computeShare);
    content.bandwidthShare += 0.1 * (time.bandwidthShare - content.bandwidthShare);
    return time.ms;
  }

  function settle(
    sequence: Sequence,
    nowMs: number,
    firstTokens: StepResult['firstTokens'] & object[],
  ): Outcome | undefined {
    sequence.computedTokens += sequence.scheduled;
    sequence.scheduled = 0;
    if (sequence.computedTokens < targetTokens(sequence)) return undefined;
    sequence.generated++;
    if (sequence.generated === 1) {
      sequence.firstTokenMs = nowMs;
      firstTokens.push({ request: sequence.request, atMs: nowMs });
    }
    if (sequence.generated < sequence.request.outputTokens) return undefined;
    cache.release(sequence.request.blocks, sequence.ownTokens, sequence.computedTokens);
    running.splice(running.indexOf(sequence), 1);
    const { request, dispatchedMs, firstTokenMs, preemptions } = sequence;
    return { request, dispatchedMs, firstTokenMs, finishedMs: nowMs, preemptions };
  }

  return {
    name: options.name,
    submit(request, nowMs) {
      waiting.push({
        request,
        dispatchedMs: nowMs,
        computedTokens: 0,
        generated: 0,
        ownTokens: 0,
        firstTokenMs: 0,
        preemptions: 0,
        scheduled: 0,
      });
    },
    beginStep(nowMs) {
      if (content.stepEndsMs !== undefined || (waiting.length === 0 && running.length === 0)) return undefined;
      admitWaiting(scheduleRunning(options.maxBatchTokens));
      if (running.every((sequence) => sequence.scheduled === 0)) return undefined;
      content.stepEndsMs = nowMs + measureStep();
      return content.stepEndsMs;
    },
    endStep(nowMs) {
      content.stepEndsMs = undefined;
      const firstTokens: { request: SimulatedRequest; atMs: number }[] = [];
      const finished = running
        .filter((sequence) => sequence.scheduled > 0)
        .flatMap((sequence) => settle(sequence, nowMs, firstTokens) ?? []);
      return { firstTokens, finished };
    },
    stepEndsMs: () => content.stepEndsMs,
    metrics: () => ({
      waiting: waiting.length,
      running: running.length,
      kvCacheUsage: cache.usedTokens() / cache.capacityTokens,
      inflightTokens: [...waiting, ...running].reduce((sum, sequence) => sum + targetTokens(sequence), 0),
      computeShare: content.computeShare,
      bandwidthShare: content.bandwidthShare,
    }),
    prefixScore: (request) =>
      request.blocks.length === 0 ? 0 : cache.countMatching(request.blocks) / request.blocks.length,
    setTimer: (next) => {
      content.timer = next;
    },
    fork: () =>
      buildServer(options, {
        ...content,
        cache: cache.fork(),
        waiting: waiting.map((sequence) => ({ ...sequence })),
        running: running.map((sequence) => ({ ...sequence })),
      }),
  };
}
