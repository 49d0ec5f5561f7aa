/** Simulates the sequences of a server: which of them a step runs, preempts and completes. */
import type { PrefixCache } from './prefix-cache.ts';
import type { StepLoad } from './step-time.ts';
import type { SimulatedRequest } from './workload.ts';

/** The outcome of a request, as the server's client saw it. */
export interface Outcome {
  readonly request: SimulatedRequest;
  readonly dispatchedMs: number;
  readonly firstTokenMs: number;
  readonly finishedMs: number;
  readonly preemptions: number;
}

export interface StepResult {
  readonly firstTokens: readonly { readonly request: SimulatedRequest; readonly atMs: number }[];
  readonly finished: readonly Outcome[];
}

interface Sequence {
  readonly request: SimulatedRequest;
  readonly dispatchedMs: number;
  computedTokens: number;
  generated: number;
  ownTokens: number;
  firstTokenMs: number;
  preemptions: number;
  /** The tokens of this sequence in the present step. */
  scheduled: number;
}

export interface Batch {
  readonly cache: PrefixCache;
  readonly waiting: Sequence[];
  readonly running: Sequence[];
}

export interface BatchLimits {
  readonly maxBatchTokens: number;
  readonly maxSequences: number;
  readonly blockTokens: number;
}

export function createSequence(request: SimulatedRequest, nowMs: number): Sequence {
  return {
    request,
    dispatchedMs: nowMs,
    computedTokens: 0,
    generated: 0,
    ownTokens: 0,
    firstTokenMs: 0,
    preemptions: 0,
    scheduled: 0,
  };
}

export function isEmpty({ waiting, running }: Batch): boolean {
  return waiting.length === 0 && running.length === 0;
}

/** Returns an independent copy. */
export function forkBatch({ cache, waiting, running }: Batch): Batch {
  const copy = (sequence: Sequence): Sequence => ({ ...sequence });
  return { cache: cache.fork(), waiting: waiting.map(copy), running: running.map(copy) };
}

/** Returns the tokens that must be computed before the next one is generated: the prompt and all generated tokens. */
export function targetTokens(sequence: Sequence): number {
  return sequence.request.inputTokens + sequence.generated;
}

/** Distributes the tokens of the next step, first to running sequences, then to waiting ones. */
export function scheduleStep(batch: Batch, limits: BatchLimits): void {
  admitWaiting(batch, limits, scheduleRunning(batch, limits.maxBatchTokens));
}

function scheduleRunning(batch: Batch, budget: number): number {
  const { running } = batch;
  let left = budget;
  // The loop is over positions, because making room removes the newest sequences from the end of the list.
  for (let i = 0; i < running.length; i++) {
    const sequence = running[i]!;
    const remaining = targetTokens(sequence) - sequence.computedTokens;
    const isDecoding = sequence.generated > 0 && remaining <= 1;
    if (left <= 0 || (isDecoding && !ensureRoomForToken(batch, sequence))) continue;
    sequence.scheduled = Math.min(remaining, left);
    left -= sequence.scheduled;
  }
  return left;
}

/** Reserves room for one more token of a decoding sequence, and preempts the newest sequences for it. */
function ensureRoomForToken(batch: Batch, sequence: Sequence): boolean {
  while (!batch.cache.acquire([], 1)) {
    const newest = batch.running.at(-1);
    if (newest === undefined) return false;
    preempt(batch, newest);
    if (newest === sequence) return false;
  }
  sequence.ownTokens++;
  return true;
}

/** Releases all memory of a sequence; its own tokens must be computed again. */
function preempt({ cache, running, waiting }: Batch, sequence: Sequence): void {
  cache.release(sequence.request.blocks, sequence.ownTokens, sequence.computedTokens);
  Object.assign(sequence, { computedTokens: 0, ownTokens: 0, scheduled: 0, preemptions: sequence.preemptions + 1 });
  running.splice(running.indexOf(sequence), 1);
  waiting.unshift(sequence);
}

function admitWaiting({ cache, waiting, running }: Batch, limits: BatchLimits, budget: number): void {
  let left = budget;
  while (left > 0 && running.length < limits.maxSequences) {
    const [next] = waiting;
    if (next === undefined) return;
    const { blocks } = next.request;
    const cached = Math.min(cache.countMatching(blocks) * limits.blockTokens, targetTokens(next) - 1);
    const own = Math.max(0, targetTokens(next) - blocks.length * limits.blockTokens);
    if (!cache.acquire(blocks, own)) return;
    waiting.shift();
    next.ownTokens = own;
    next.computedTokens = cached;
    next.scheduled = Math.min(targetTokens(next) - cached, left);
    left -= next.scheduled;
    running.push(next);
  }
}

/** Adds up the work of the scheduled tokens. */
export function measureLoad(running: readonly Sequence[]): StepLoad {
  const load = {
    prefillTokens: 0,
    prefillAttention: 0,
    prefillSequences: 0,
    decodeSequences: 0,
    decodeContextTokens: 0,
  };
  for (const { scheduled, computedTokens, generated } of running) {
    if (scheduled === 0) continue;
    if (generated > 0 && scheduled === 1) {
      load.decodeSequences++;
      load.decodeContextTokens += computedTokens + scheduled;
    } else {
      load.prefillSequences++;
      load.prefillTokens += scheduled;
      load.prefillAttention += scheduled * (computedTokens + scheduled / 2);
    }
  }
  return load;
}

/** Ends a step: scheduled tokens count as computed. Returns first tokens and finished requests. */
export function completeStep(batch: Batch, nowMs: number): StepResult {
  const firstTokens: { request: SimulatedRequest; atMs: number }[] = [];
  const finished: Outcome[] = [];
  for (const sequence of batch.running.filter(({ scheduled }) => scheduled > 0)) {
    if (!advance(sequence)) continue;
    if (sequence.generated === 1) {
      sequence.firstTokenMs = nowMs;
      firstTokens.push({ request: sequence.request, atMs: nowMs });
    }
    if (sequence.generated < sequence.request.outputTokens) continue;
    finished.push(finish(batch, sequence, nowMs));
  }
  return { firstTokens, finished };
}

/** Returns true if the step generated a token. */
function advance(sequence: Sequence): boolean {
  sequence.computedTokens += sequence.scheduled;
  sequence.scheduled = 0;
  if (sequence.computedTokens < targetTokens(sequence)) return false;
  sequence.generated++;
  return true;
}

function finish({ cache, running }: Batch, sequence: Sequence, nowMs: number): Outcome {
  const { request, dispatchedMs, firstTokenMs, preemptions } = sequence;
  cache.release(request.blocks, sequence.ownTokens, sequence.computedTokens);
  running.splice(running.indexOf(sequence), 1);
  return { request, dispatchedMs, firstTokenMs, finishedMs: nowMs, preemptions };
}
