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
}

/** Routes requests; may learn from what it is told. */
export interface RoutingPolicy {
  readonly name: string;
  /** The index of the chosen candidate. */
  choose(request: SimulatedRequest, candidates: readonly Candidate[], nowMs: number): number;
  onFirstToken?(request: SimulatedRequest, candidate: Candidate, ttftMs: number, nowMs: number): void;
  onFinished?(request: SimulatedRequest, candidate: Candidate, tpotMs: number | undefined, nowMs: number): void;
}

export interface SimulationOptions {
  readonly servers: readonly SimulatedServer[];
  readonly requests: readonly SimulatedRequest[];
  readonly policy: RoutingPolicy;
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
  | { readonly kind: 'seen'; readonly metrics: readonly ServerMetrics[] }
  | { readonly kind: 'change'; readonly apply: () => void };

/** Runs until the last request has finished; observations in the order of finishing. */
export function simulate(options: SimulationOptions): SimulatedObservation[] {
  const { servers, policy } = options;
  const events = createEventQueue<Event>();
  const chosen = new Map<number, Candidate>();
  const observations: SimulatedObservation[] = [];
  const inflight = servers.map(() => 0);
  let seen: readonly ServerMetrics[] = servers.map((server) => server.metrics());
  let unfinished = options.requests.length;

  for (const request of options.requests) events.push(request.arrivalMs, { kind: 'arrival', request });
  for (const { atMs, apply } of options.changes ?? []) events.push(atMs, { kind: 'change', apply });
  events.push(0, { kind: 'scrape' });

  function step(index: number, nowMs: number): void {
    const endMs = servers[index]?.beginStep(nowMs);
    if (endMs !== undefined) events.push(endMs, { kind: 'step', server: index });
  }

  function route(request: SimulatedRequest, nowMs: number): void {
    const candidates = servers.map((server, index) =>
      describeCandidate(server, seen[index]!, request, inflight[index]!),
    );
    const index = policy.choose(request, candidates, nowMs);
    chosen.set(request.id, candidates[index]!);
    inflight[index]! += request.inputTokens;
    servers[index]!.submit(request, nowMs);
    step(index, nowMs);
  }

  function settleStep(index: number, nowMs: number): void {
    const { firstTokens, finished } = servers[index]!.endStep(nowMs);
    for (const { request } of firstTokens)
      policy.onFirstToken?.(request, chosen.get(request.id)!, nowMs - request.arrivalMs, nowMs);
    for (const outcome of finished) settle(outcome, index, nowMs);
    step(index, nowMs);
  }

  function settle(outcome: Outcome, index: number, nowMs: number): void {
    const { request } = outcome;
    const candidate = chosen.get(request.id)!;
    const tpotMs =
      request.outputTokens > 1 ? (outcome.finishedMs - outcome.firstTokenMs) / (request.outputTokens - 1) : undefined;
    inflight[index]! -= request.inputTokens;
    unfinished--;
    chosen.delete(request.id);
    observations.push({ candidate, outcome, ttftMs: outcome.firstTokenMs - outcome.dispatchedMs, tpotMs });
    policy.onFinished?.(request, candidate, tpotMs, nowMs);
  }

  while (unfinished > 0) {
    const next = events.pop();
    if (next === undefined) return observations;
    const { atMs, event } = next;
    switch (event.kind) {
      case 'arrival':
        route(event.request, atMs);
        break;
      case 'step':
        settleStep(event.server, atMs);
        break;
      case 'scrape':
        events.push(atMs + options.scrapeDelayMs, { kind: 'seen', metrics: servers.map((server) => server.metrics()) });
        events.push(atMs + options.scrapeIntervalMs, { kind: 'scrape' });
        break;
      case 'seen':
        seen = event.metrics;
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
  inflightTokens: number,
): Candidate {
  return {
    server: server.name,
    inputTokenLength: request.inputTokens,
    prefixCacheScore: server.prefixScore(request),
    numRequestWaiting: metrics.waiting,
    numRequestRunning: metrics.running,
    kvCacheUsage: metrics.kvCacheUsage,
    inflightTokens,
    aiCoreUtilization: metrics.computeShare,
    bandwidthUtilization: metrics.bandwidthShare,
  };
}
