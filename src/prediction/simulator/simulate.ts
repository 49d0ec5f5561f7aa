/**
 * Runs the simulation event by event: arrivals, routing, steps of servers. A policy routes by what a gateway can know at that time
 * (old scraped metrics, its own count of tokens in flight, the prefix index), and receives each result at its time, as a live
 * predictor would.
 */

import { createEventQueue, type EventQueue } from './event-queue.ts';
import type { Outcome } from './running-batch.ts';
import type { ServerMetrics, SimulatedServer } from './server.ts';
import type { SimulatedRequest } from './workload.ts';

/** One candidate as the gateway sees it; the fields of a PredictInput. */
export interface Candidate {
  readonly server: string;
  readonly inputTokenLength: number;
  readonly prefixCacheScore: number;
  readonly numRequestWaiting: number;
  readonly numRequestRunning: number;
  readonly kvCacheUsage: number;
  readonly inflightTokens: number;
  readonly aiCoreUtilization: number;
  readonly bandwidthUtilization: number;
  /** Requests that the gateway sent there and that have not ended, by its own count, which is never old. */
  readonly underWay: number;
  /** Requests that the gateway sent there since the scrape: the metrics cannot show them yet. */
  readonly sentSinceScrape: number;
}

/** Routes requests, and may learn from their observed times. */
export type RoutingPolicy = Policy<number, void>;

/** A policy that calls another process. Simulated time stops until the answer arrives. */
export type RemotePolicy = Policy<Promise<number>, Promise<void>>;

interface Policy<Choice, Done> {
  readonly name: string;
  /** Returns the index of the chosen candidate. */
  choose(request: SimulatedRequest, candidates: readonly Candidate[], nowMs: number): Choice;
  onFirstToken?(request: SimulatedRequest, candidate: Candidate, ttftMs: number, nowMs: number): Done;
  onFinished?(request: SimulatedRequest, candidate: Candidate, tpotMs: number | undefined, nowMs: number): Done;
}

export interface SimulationOptions<P = RoutingPolicy> {
  readonly servers: readonly SimulatedServer[];
  readonly requests: readonly SimulatedRequest[];
  readonly policy: P;
  readonly scrapeIntervalMs: number;
  /** The age of a scrape when the gateway receives it. */
  readonly scrapeDelayMs: number;
  /** Called at given times, for example to slow a server down. */
  readonly changes?: readonly { readonly atMs: number; readonly apply: () => void }[];
}

export interface SimulatedObservation {
  readonly candidate: Candidate;
  readonly outcome: Outcome;
  readonly ttftMs: number;
  /** Undefined for a single token. */
  readonly tpotMs: number | undefined;
}

type Event =
  | { readonly kind: 'arrival'; readonly request: SimulatedRequest }
  | { readonly kind: 'step'; readonly server: number }
  | { readonly kind: 'scrape' }
  | { readonly kind: 'seen'; readonly scrape: Scrape }
  | { readonly kind: 'change'; readonly apply: () => void };

interface Scrape {
  readonly metrics: readonly ServerMetrics[];
  /** How many requests the gateway had sent to each server at the time of the scrape. */
  readonly sent: readonly number[];
}

/** Runs until the last request has finished. Returns observations in the order in which requests finished. */
export function simulate(options: SimulationOptions): SimulatedObservation[] {
  const run = runEvents(options);
  let next = run.next(0);
  while (next.done !== true) next = run.next(next.value ?? 0);
  return next.value;
}

/** Simulates with a policy that chooses asynchronously. */
export async function simulateRemotely(options: SimulationOptions<RemotePolicy>): Promise<SimulatedObservation[]> {
  const run = runEvents(options);
  let next = run.next(0);
  while (next.done !== true) next = run.next((await next.value) ?? 0);
  return next.value;
}

/** Yields what the policy returned, and continues with its result: for a choice, the index of the candidate. */
function* runEvents<Choice, Done>(
  options: SimulationOptions<Policy<Choice, Done>>,
): Generator<Choice | Done | undefined, SimulatedObservation[], number> {
  const events = createEventQueue<Event>();
  const pool = createPool(options.servers, events);
  for (const request of options.requests) events.push(request.arrivalMs, { kind: 'arrival', request });
  for (const { atMs, apply } of options.changes ?? []) events.push(atMs, { kind: 'change', apply });
  events.push(0, { kind: 'scrape' });

  while (pool.observations.length < options.requests.length) {
    const next = events.pop();
    if (next === undefined) break;
    const { atMs, event } = next;
    switch (event.kind) {
      case 'arrival':
        yield* route(pool, options.policy, event.request, atMs);
        break;
      case 'step':
        yield* completeStep(pool, options.policy, event.server, atMs);
        break;
      case 'scrape':
        events.push(atMs + options.scrapeDelayMs, { kind: 'seen', scrape: scrapePool(pool, atMs) });
        events.push(atMs + options.scrapeIntervalMs, { kind: 'scrape' });
        break;
      case 'seen':
        pool.seen = event.scrape;
        break;
      case 'change':
        event.apply();
        break;
    }
  }
  return pool.observations;
}

/** The servers, and what the gateway knows about them. */
interface Pool {
  readonly servers: readonly SimulatedServer[];
  readonly events: EventQueue<Event>;
  /** The candidate to which each request under way was sent, by the request's id. */
  readonly chosen: Map<number, Candidate>;
  readonly observations: SimulatedObservation[];
  /** Counts by server, in this order: prompt tokens under way, requests under way, requests sent. */
  readonly inflight: number[];
  readonly underWay: number[];
  readonly sent: number[];
  /** The newest scrape that the gateway has received. */
  seen: Scrape;
}

function createPool(servers: readonly SimulatedServer[], events: EventQueue<Event>): Pool {
  const zeros = () => servers.map(() => 0);
  const seen = { metrics: servers.map((server) => server.metrics(0)), sent: zeros() };
  const counts = { inflight: zeros(), underWay: zeros(), sent: zeros() };
  return { servers, events, chosen: new Map(), observations: [], ...counts, seen };
}

function scrapePool({ servers, sent }: Pool, nowMs: number): Scrape {
  return { metrics: servers.map((server) => server.metrics(nowMs)), sent: [...sent] };
}

function startStep({ servers, events }: Pool, index: number, nowMs: number): void {
  const endMs = servers[index]?.beginStep(nowMs);
  if (endMs !== undefined) events.push(endMs, { kind: 'step', server: index });
}

function* route<Choice>(
  pool: Pool,
  policy: Policy<Choice, unknown>,
  request: SimulatedRequest,
  nowMs: number,
): Generator<Choice, void, number> {
  const { servers, inflight, underWay, sent, seen } = pool;
  const candidates = servers.map((server, index) =>
    describeCandidate(server, seen.metrics[index]!, request, {
      inflightTokens: inflight[index]!,
      underWay: underWay[index]!,
      sentSinceScrape: sent[index]! - seen.sent[index]!,
    }),
  );
  const index = yield policy.choose(request, candidates, nowMs);
  pool.chosen.set(request.id, candidates[index]!);
  inflight[index]! += request.inputTokens;
  underWay[index]!++;
  sent[index]!++;
  servers[index]!.submit(request, nowMs);
  startStep(pool, index, nowMs);
}

function* completeStep<Done>(
  pool: Pool,
  policy: Policy<unknown, Done>,
  index: number,
  nowMs: number,
): Generator<Done | undefined, void, number> {
  const { firstTokens, finished } = pool.servers[index]!.endStep(nowMs);
  for (const { request } of firstTokens)
    yield policy.onFirstToken?.(request, pool.chosen.get(request.id)!, nowMs - request.arrivalMs, nowMs);
  for (const outcome of finished) {
    const { candidate, tpotMs } = observe(pool, outcome, index);
    yield policy.onFinished?.(outcome.request, candidate, tpotMs, nowMs);
  }
  startStep(pool, index, nowMs);
}

function observe(pool: Pool, outcome: Outcome, index: number): SimulatedObservation {
  const { id, inputTokens, outputTokens } = outcome.request;
  const candidate = pool.chosen.get(id)!;
  const tpotMs = outputTokens > 1 ? (outcome.finishedMs - outcome.firstTokenMs) / (outputTokens - 1) : undefined;
  pool.inflight[index]! -= inputTokens;
  pool.underWay[index]!--;
  pool.chosen.delete(id);
  const observation = { candidate, outcome, ttftMs: outcome.firstTokenMs - outcome.dispatchedMs, tpotMs };
  pool.observations.push(observation);
  return observation;
}

function describeCandidate(
  server: SimulatedServer,
  metrics: ServerMetrics,
  request: SimulatedRequest,
  ownCounts: Pick<Candidate, 'inflightTokens' | 'underWay' | 'sentSinceScrape'>,
): Candidate {
  return {
    server: server.name,
    inputTokenLength: request.inputTokens,
    prefixCacheScore: server.prefixScore(request),
    numRequestWaiting: metrics.waiting,
    numRequestRunning: metrics.running,
    kvCacheUsage: metrics.kvCacheUsage,
    aiCoreUtilization: metrics.computeShare,
    bandwidthUtilization: metrics.bandwidthShare,
    ...ownCounts,
  };
}
