/** Derives a pool from samples: its servers, their latencies under load, and the requests that they get. */
import { Failure } from '../../errors.ts';
import type { LatencyModel } from '../model/model.ts';
import { METRIC_COLUMNS } from '../schema/columns.ts';
import type { Observation } from '../schema/observation.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { fitLoadCurve } from './load-curve.ts';
import { collectPromptTimes } from './prompt-times.ts';
import { measureReportedShare } from './reported-share.ts';
import { createServiceModel } from './service-model.ts';
import type { QueuePool, QueueServer } from './simulate-queue.ts';
import { fitTpotCurve, MIN_TPOT_SAMPLES } from './tpot-curve.ts';

export interface ObservedPoolOptions {
  readonly model: LatencyModel;
  /** The two samples of a streamed request need not be joined: `joinSamples` does it. */
  readonly samples: readonly Observation[];
  /** All servers in the samples when undefined. */
  readonly servers: readonly string[] | undefined;
  readonly podType: string;
  /** The mean length of a prompt; that of the samples when undefined. */
  readonly promptTokens?: number | undefined;
  /** The mean length of an answer; that of the samples when undefined. */
  readonly outputTokens: number | undefined;
}

export interface MeanLengths {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export interface ObservedPool extends QueuePool {
  readonly lengths: MeanLengths;
}

/** Servers under load, without what only a simulation of queues needs. */
export interface ObservedServers extends Pick<ObservedPool, 'model' | 'lengths'> {
  readonly servers: readonly ObservedServer[];
}

export interface ObservedServer extends Omit<QueueServer, 'promptTimes'> {
  readonly samples: readonly Observation[];
  /** The share of the server's requests that were reported. */
  readonly reportedShare: number;
}

export const MIN_SAMPLES = 50;

export function createObservedPool(options: ObservedPoolOptions): ObservedPool {
  const { servers, model, lengths } = observeServers(options);
  return { servers: servers.map(toQueueServer), model, outputTokens: lengths.outputTokens, lengths };
}

function toQueueServer({ samples, reportedShare, ...server }: ObservedServer): QueueServer {
  const promptTimes = collectPromptTimes(samples, reportedShare);
  if (promptTimes === undefined)
    throw new Failure(
      'invalid',
      `Cannot find the capacity: too few samples of the server "${server.name}" show how long a prompt takes, since requests of no sample wait before it; report all requests`,
      { field: 'servers' },
    );
  return { ...server, promptTimes };
}

export function observeServers(options: ObservedPoolOptions): ObservedServers {
  const steps = observeInSteps(options);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Does the same in steps of one server each, between which a serving thread can answer calls. */
export function* observeInSteps({ model, samples, ...options }: ObservedPoolOptions): Generator<void, ObservedServers> {
  const podType = normalizePodType(options.podType);
  const ofPod = samples.filter(({ input }) => normalizePodType(input.podType) === podType);
  if (ofPod.length < MIN_SAMPLES)
    throw new Failure(
      'invalid',
      `Cannot find the capacity: there are ${ofPod.length} samples of the pod type "${podType}", and at least ${MIN_SAMPLES}${describeNeed(samples, podType)}`,
      { field: 'pod_type' },
    );
  const byServer = Map.groupBy(ofPod, ({ input }) => input.serverIp);
  const names = options.servers ?? [...byServer.keys()].sort();
  checkNames(names, byServer);
  for (const [name, own] of byServer) {
    byServer.set(name, joinSamples(forgetSharedTimes(own)));
    yield;
  }
  const lengths = chooseLengths([...byServer.values()].flat(), options);
  const servers: ObservedServer[] = [];
  for (const name of names) {
    servers.push(observeServer(name, byServer.get(name)!, lengths));
    yield;
  }
  return { servers, model: yield* createServiceModel(model, podType, servers), lengths };
}

/** Throws unless each server has samples and is named once. */
function checkNames(names: readonly string[], byServer: ReadonlyMap<string, unknown>): void {
  const unknown = names.find((name) => !byServer.has(name));
  if (unknown !== undefined)
    throw new Failure(
      'invalid',
      `Cannot find the capacity: no sample is of the server "${unknown}"; known are ${listNames(byServer.keys())}`,
      { field: 'servers' },
    );
  const repeated = names.find((name, i) => names.indexOf(name) < i);
  if (repeated !== undefined)
    throw new Failure('invalid', `Cannot find the capacity: the server "${repeated}" must be named once`, {
      field: 'servers',
    });
}

/** The mean lengths, and the factors by which the lengths of samples are scaled to them. */
interface ScaledLengths extends MeanLengths {
  readonly promptScale: number;
  readonly outputScale: number;
}

function chooseLengths(
  samples: readonly Observation[],
  asked: Pick<ObservedPoolOptions, 'promptTokens' | 'outputTokens'>,
): ScaledLengths {
  const prompts = meanOf(samples.map(({ input }) => input.inputTokenLength)) ?? 0;
  const answers = meanOf(samples.flatMap(({ outputTokens }) => (outputTokens ? [outputTokens] : [])));
  const { promptTokens = prompts, outputTokens = answers } = asked;
  if (prompts === 0 && promptTokens > 0)
    throw new Failure('invalid', 'Cannot find the capacity: the prompts of the samples have no tokens to be scaled', {
      field: 'prompt_tokens',
    });
  if (outputTokens === undefined)
    throw new Failure(
      'invalid',
      'Cannot find the capacity: output_tokens must be given, since no sample has the length of its answer',
      { field: 'output_tokens' },
    );
  return {
    promptTokens,
    outputTokens,
    promptScale: prompts === 0 ? 1 : promptTokens / prompts,
    outputScale: outputTokens / (answers ?? outputTokens),
  };
}

function describeNeed(samples: readonly Observation[], podType: string): string {
  const others = new Set(samples.map(({ input }) => normalizePodType(input.podType)));
  others.delete(podType);
  return others.size === 0 ? ' are needed' : ` are needed; other pod types are ${listNames(others)}`;
}

const MAX_LISTED = 20;

function listNames(names: Iterable<string>): string {
  return [...names]
    .sort()
    .slice(0, MAX_LISTED)
    .map((name) => name || '""')
    .join(', ');
}

function meanOf(lengths: readonly number[]): number | undefined {
  return lengths.length === 0 ? undefined : lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
}

function observeServer(
  name: string,
  samples: readonly Observation[],
  { outputTokens, promptScale, outputScale }: ScaledLengths,
): ObservedServer {
  const reportedShare = measureReportedShare(samples, outputTokens);
  const tpot = fitTpotCurve(samples, { outputTokens, reportedShare });
  if (tpot === undefined)
    throw refuseFew(name, {
      what: 'a TPOT',
      count: samples.filter(({ tpotMs }) => tpotMs !== undefined).length,
      least: MIN_TPOT_SAMPLES,
    });
  const ttfts = countTtfts(samples);
  if (ttfts < MIN_TTFT_SAMPLES) throw refuseFew(name, { what: 'a TTFT', count: ttfts, least: MIN_TTFT_SAMPLES });
  return {
    name,
    samples,
    reportedShare,
    load: fitLoadCurve(samples.map(({ input }) => input)),
    tpot,
    requests: samples.map(({ input, outputTokens: own }) => ({
      inputTokenLength: Math.round(promptScale * input.inputTokenLength),
      prefixCacheScore: input.prefixCacheScore,
      outputTokens: own ? Math.max(1, Math.round(outputScale * own)) : undefined,
    })),
  };
}

/** A server needs at least this many samples with a TTFT. */
export const MIN_TTFT_SAMPLES = 40;

export function countTtfts(samples: readonly Observation[]): number {
  return samples.filter(({ ttftMs }) => ttftMs !== undefined).length;
}

interface FewSamples {
  readonly what: string;
  readonly count: number;
  readonly least: number;
}

function refuseFew(server: string, { what, count, least }: FewSamples): Failure {
  return new Failure(
    'invalid',
    `Cannot find the capacity: the server "${server}" needs at least ${least} samples with ${what}, and has ${count}; name the servers that have enough, or report more requests`,
    { field: 'servers' },
  );
}

/** A server does not get more requests than this in one millisecond by chance. */
const MOST_AT_ONCE = 8;

/**
 * Removes times of day that many samples share. They are rounded, or they are when rows without a time were stored. As arrivals at
 * one instant, all of these prompts would seem to be computed in the time of the slowest.
 */
function forgetSharedTimes(samples: readonly Observation[]): Observation[] {
  const sharing = Map.groupBy(samples, ({ run, atMs }) => `${run} ${atMs}`);
  return [...sharing.values()].flatMap((together) =>
    together.filter(({ ttftMs }) => ttftMs !== undefined).length > MOST_AT_ONCE
      ? together.map((sample) => ({ ...sample, atMs: undefined }))
      : together,
  );
}

/**
 * Joins the two samples of a streamed request. The store has one for the TTFT and one for the answer, since the first comes long
 * before the second; both have the input and the time of the dispatch. The second sample of a one-token answer has neither TTFT nor
 * TPOT. If the two counted as two requests, half would have no answer length, and the span of an answer would begin at the arrival.
 * Samples with both times stay as they are, as do those without a time of day.
 */
export function joinSamples(samples: readonly Observation[]): Observation[] {
  const joined: Observation[] = [];
  /** Positions of samples that lack TTFT or TPOT, by the key that joins them. */
  const halves = new Map<string, number[]>();
  for (const sample of samples) {
    if (sample.atMs === undefined || (sample.ttftMs !== undefined && sample.tpotMs !== undefined)) {
      joined.push(sample);
      continue;
    }
    const [own, other] = sample.ttftMs === undefined ? ['tpot', 'ttft'] : ['ttft', 'tpot'];
    const key = keyOf(sample);
    const position = halves.get(`${other} ${key}`)?.shift();
    if (position === undefined) addTo(halves, `${own} ${key}`, joined.push(sample) - 1);
    else joined[position] = merge(joined[position]!, sample);
  }
  return joined;
}

function keyOf({ input, atMs, run }: Observation): string {
  return JSON.stringify([atMs, run, input.serverIp, input.podType, ...METRIC_COLUMNS.map((name) => input[name])]);
}

function addTo(halves: Map<string, number[]>, key: string, position: number): void {
  const known = halves.get(key);
  if (known === undefined) halves.set(key, [position]);
  else known.push(position);
}

function merge(one: Observation, other: Observation): Observation {
  const { ttftMs = other.ttftMs, tpotMs = other.tpotMs } = one;
  const { outputTokens = other.outputTokens } = one;
  return { ...one, ttftMs, tpotMs, outputTokens };
}
