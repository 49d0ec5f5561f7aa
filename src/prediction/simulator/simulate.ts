/**
 * The discrete-event loop: requests arrive at a gateway, a policy routes each by what the gateway can know then (metrics
 * scraped some time ago, its own count of tokens in flight, the prefix index), servers step, and everything that
 * happened is handed to the policy at its time, as a live predictor would hear of it.
 */
import { createEventQueue } from './event-queue.ts';
import type { Outcome, ServerMetrics, SimulatedServer } from './server.ts';
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
  /** Requests that the gateway has sent there and that have not ended: counted by itself, so never old. */
  readonly underWay: number;
  /** Those among them that the metrics cannot show yet. */
  readonly sentSinceScrape: number;
}

/** Routes requests; may learn from what happened to them. */
export type RoutingPolicy = Policy<number, void>;

/** A policy that asks another process. Simulated time stands still until the answer is there. */
export type RemotePolicy = Policy<Promise<number>, Promise<void>>;

interface Policy<Choice, Told> {
  readonly name: string;
  /** The index of the chosen candidate. */
  choose(request: SimulatedRequest, candidates: readonly Candidate[], nowMs: number): Choice;
  onFirstToken?(request: SimulatedRequest, candidate: Candidate, ttftMs: number, nowMs: number): Told;
  onFinished?(request: SimulatedRequest, candidate: Candidate, tpotMs: number | undefined, nowMs: number): Told;
}

export interface SimulationOptions<P = RoutingPolicy> {
  readonly servers: readonly SimulatedServer[];
  readonly requests: readonly SimulatedRequest[];
  readonly policy: P;
  readonly scrapeIntervalMs: number;
  /** How old a scrape is when the gateway learns of it. */
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
  /** How many requests the gateway had sent to each server by then. */
  readonly sent: readonly number[];
}

/** Runs until the last request has finished; observations in the order of finishing. */
export function simulate(options: SimulationOptions): SimulatedObservation[] {
  const run = runEvents(options);
  let next = run.next(0);
  while (next.done !== true) next = run.next(next.value ?? 0);
  return next.value;
}

/** The same with a policy that must be waited for. */
export async function simulateRemotely(options: SimulationOptions<RemotePolicy>): Promise<SimulatedObservation[]> {
  const run = runEvents(options);
  let next = run.next(0);
  while (next.done !== true) next = run.next((await next.value) ?? 0);
  return next.value;
}

/** Hands out what the policy returned, and goes on with what that has become: a choice is the index chosen. */
function* runEvents<Choice, Told>(
  options: SimulationOptions<Policy<Choice, Told>>,
): Generator<Choice | Told | undefined, SimulatedObservation[], number> {
  const { servers, policy } = options;
  const events = createEventQueue<Event>();
  const chosen = new Map<number, Candidate>();
  const observations: SimulatedObservation[] = [];
  const inflight = servers.map(() => 0);
  const underWay = servers.map(() => 0);
  const sent = servers.map(() => 0);
  let seen = scrape();
  let unfinished = options.requests.length;

  for (const request of options.requests) events.push(request.arrivalMs, { kind: 'arrival', request });
  for (const { atMs, apply } of options.changes ?? []) events.push(atMs, { kind: 'change', apply });
  events.push(0, { kind: 'scrape' });

  function scrape(): Scrape {
    return { metrics: servers.map((server) => server.metrics()), sent: [...sent] };
  }

  function step(index: number, nowMs: number): void {
    const endMs = servers[index]?.beginStep(nowMs);
    if (endMs !== undefined) events.push(endMs, { kind: 'step', server: index });
  }

  function* route(request: SimulatedRequest, nowMs: number): Generator<Choice, void, number> {
    const candidates = servers.map((server, index) =>
      describeCandidate(server, seen.metrics[index]!, request, {
        inflightTokens: inflight[index]!,
        underWay: underWay[index]!,
        sentSinceScrape: sent[index]! - seen.sent[index]!,
      }),
    );
    const index = yield policy.choose(request, candidates, nowMs);
    chosen.set(request.id, candidates[index]!);
    inflight[index]! += request.inputTokens;
    underWay[index]!++;
    sent[index]!++;
    servers[index]!.submit(request, nowMs);
    step(index, nowMs);
  }

  function* settleStep(index: number, nowMs: number): Generator<Told | undefined, void, number> {
    const { firstTokens, finished } = servers[index]!.endStep(nowMs);
    for (const { request } of firstTokens)
      yield policy.onFirstToken?.(request, chosen.get(request.id)!, nowMs - request.arrivalMs, nowMs);
    for (const outcome of finished) yield settle(outcome, index, nowMs);
    step(index, nowMs);
  }

  function settle(outcome: Outcome, index: number, nowMs: number): Told | undefined {
    const { request } = outcome;
    const candidate = chosen.get(request.id)!;
    const tpotMs =
      request.outputTokens > 1 ? (outcome.finishedMs - outcome.firstTokenMs) / (request.outputTokens - 1) : undefined;
    inflight[index]! -= request.inputTokens;
    underWay[index]!--;
    unfinished--;
    chosen.delete(request.id);
    observations.push({ candidate, outcome, ttftMs: outcome.firstTokenMs - outcome.dispatchedMs, tpotMs });
    return policy.onFinished?.(request, candidate, tpotMs, nowMs);
  }

  while (unfinished > 0) {
    const next = events.pop();
    if (next === undefined) return observations;
    const { atMs, event } = next;
    switch (event.kind) {
      case 'arrival':
        yield* route(event.request, atMs);
        break;
      case 'step':
        yield* settleStep(event.server, atMs);
        break;
      case 'scrape':
        events.push(atMs + options.scrapeDelayMs, { kind: 'seen', scrape: scrape() });
        events.push(atMs + options.scrapeIntervalMs, { kind: 'scrape' });
        break;
      case 'seen':
        seen = event.scrape;
        break;
      case 'change':
        event.apply();
        break;
    }
  }
  return observations;
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
