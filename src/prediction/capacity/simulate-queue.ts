/**
 * A pool under Poisson arrivals, whose servers take the times that were learned of them.
 *
 * The state of a server is n, its requests under way. A request that arrives at server s
 *   1. has its first token after a TTFT that was observed at about n, with as many prompt tokens in the seconds before
 *      (`observed-ttfts.ts`);
 *   2. then gets tokens at the pace of the server: in dt it gets dt / (f · P_s(n(t), ρ(t))) of them, with P_s the time of
 *      a token at n while prompts come at the pace ρ (`tpot-curve.ts`), and f a factor drawn from what was observed
 *      around it;
 *   3. leaves with its last token.
 * So rate, concurrency and latency agree by themselves, as in Little's law n = λ · E[stay], with the variance of
 * arrivals and prompts that a fixed point of means would leave out. All at a server share one pace, so its tokens are
 * counted in a virtual time of its own, as in processor sharing.
 */
import { createEventQueue, type EventQueue } from '../simulator/event-queue.ts';
import { drawExponential, type Random } from '../simulator/random-draws.ts';
import type { LoadCurve } from './load-curve.ts';
import { countTokens, type ObservedTtfts, RECENT_MS } from './observed-ttfts.ts';
import type { ServiceModel, ServiceRequest } from './service-model.ts';
import type { TpotCurve } from './tpot-curve.ts';

export interface QueueServer {
  readonly name: string;
  readonly load: LoadCurve;
  readonly tpot: TpotCurve;
  readonly ttft: ObservedTtfts;
}

export interface QueuePool {
  readonly servers: readonly QueueServer[];
  readonly model: ServiceModel;
  /** Prompts to draw from. */
  readonly prompts: readonly ServiceRequest[];
  /** The mean. By the insensitivity of queues that share their processor, more of the distribution matters little. */
  readonly outputTokens: number;
}

export interface QueueRun {
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly random: Random;
}

export interface QueueOutcome {
  /** Sorted. */
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  /** By server, in their order: the mean of its requests under way at an arrival. */
  readonly meanUnderWay: readonly number[];
  /** By server: the share of the requests that it got. */
  readonly shares: readonly number[];
}

/** The pool is empty at first, so the first part of a run says too little of the load. */
const WARM_UP = 0.2;
/** A server with so many is lost: the rest of the run would only say it again. */
const MAX_UNDER_WAY = 20_000;

/** Each request goes to a server with the fewest under way. Undefined when a server has more than anyone could learn from. */
export function simulateQueue(pool: QueuePool, run: QueueRun): QueueOutcome | undefined {
  const { random } = run;
  const recorder = createRecorder(pool.servers.length);
  const servers = pool.servers.map((server) => openServer(server, recorder));
  const gapMs = 1000 / run.requestsPerSecond;
  let nowMs = 0;
  for (let i = 0; i < run.requests; i++) {
    nowMs += drawExponential(random, gapMs);
    for (const server of servers) server.advance(nowMs);
    const chosen = chooseLeast(servers, random);
    const underWay = servers[chosen]!.count();
    if (underWay >= MAX_UNDER_WAY) return undefined;
    const { ttft, tpot } = pool.servers[chosen]!;
    const prompt = pool.prompts[Math.floor(random() * pool.prompts.length)]!;
    const ttftMs = ttft.draw({ underWay, recentTokens: servers[chosen]!.recent.read(nowMs) }, random);
    servers[chosen]!.recent.add(nowMs, countTokens(prompt));
    const furtherTokens = Math.floor(drawExponential(random, pool.outputTokens - 0.5));
    const { factors } = tpot.near(underWay);
    const factor = factors[Math.floor(random() * factors.length)]!;
    const isRecorded = i >= WARM_UP * run.requests;
    if (isRecorded) recorder.addArrival(chosen, ttftMs, servers);
    servers[chosen]!.add(nowMs + ttftMs, { furtherTokens, factor, isRecorded, firstTokenMs: nowMs + ttftMs });
  }
  for (const server of servers) server.advance(Number.POSITIVE_INFINITY);
  return recorder.finish();
}

/** Ties are broken at random: the first server must not get all requests of an idle pool. */
function chooseLeast(servers: readonly RunningServer[], random: Random): number {
  const start = servers.length === 1 ? 0 : Math.floor(random() * servers.length);
  let best = start;
  for (let i = 1; i < servers.length; i++) {
    const at = (start + i) % servers.length;
    if (servers[at]!.count() < servers[best]!.count()) best = at;
  }
  return best;
}

interface Answer {
  readonly furtherTokens: number;
  readonly factor: number;
  readonly isRecorded: boolean;
  readonly firstTokenMs: number;
}

interface RunningServer {
  readonly recent: RecentTokens;
  count(): number;
  add(firstTokenMs: number, answer: Answer): void;
  advance(nowMs: number): void;
}

function openServer({ tpot }: QueueServer, recorder: Pick<Recorder, 'addTpot'>): RunningServer {
  const waiting: EventQueue<Answer> = createEventQueue();
  /** By the virtual time at which they end. */
  const answering: EventQueue<Answer> = createEventQueue();
  let count = 0;
  let atMs = 0;
  /** Tokens that a request with the factor 1 would have got so far. */
  let virtualTokens = 0;
  let msPerToken = tpot.at(0, 0);
  const recent = createRecentTokens();

  function moveTo(nowMs: number): void {
    virtualTokens += (nowMs - atMs) / msPerToken;
    atMs = nowMs;
  }

  function changeCount(by: number): void {
    count += by;
    msPerToken = tpot.at(count, recent.read(atMs) / RECENT_MS);
  }

  function finish({ furtherTokens, isRecorded, firstTokenMs }: Answer): void {
    if (isRecorded && furtherTokens > 0) recorder.addTpot((atMs - firstTokenMs) / furtherTokens);
    changeCount(-1);
  }

  return {
    count: () => count,
    recent,
    add(firstTokenMs, answer) {
      waiting.push(firstTokenMs, answer);
      changeCount(1);
    },
    advance(nowMs) {
      for (;;) {
        const firstTokenMs = waiting.nextMs() ?? Number.POSITIVE_INFINITY;
        const endTokens = answering.nextMs();
        const endMs =
          endTokens === undefined
            ? Number.POSITIVE_INFINITY
            : Math.max(atMs, atMs + (endTokens - virtualTokens) * msPerToken);
        const nextMs = Math.min(firstTokenMs, endMs);
        if (nextMs > nowMs || nextMs === Number.POSITIVE_INFINITY) break;
        moveTo(nextMs);
        if (endMs <= firstTokenMs) finish(answering.pop()!.event);
        else {
          const answer = waiting.pop()!.event;
          answering.push(virtualTokens + answer.furtherTokens * answer.factor, answer);
        }
      }
      if (nowMs < Number.POSITIVE_INFINITY) moveTo(nowMs);
    },
  };
}

interface RecentTokens {
  read(nowMs: number): number;
  add(nowMs: number, tokens: number): void;
}

/** Prompt tokens that arrived in the last `RECENT_MS`. */
function createRecentTokens(): RecentTokens {
  const arrivals: { readonly atMs: number; readonly tokens: number }[] = [];
  let oldest = 0;
  let sum = 0;
  return {
    read(nowMs) {
      while (oldest < arrivals.length && arrivals[oldest]!.atMs <= nowMs - RECENT_MS) sum -= arrivals[oldest++]!.tokens;
      return sum;
    },
    add(atMs, tokens) {
      arrivals.push({ atMs, tokens });
      sum += tokens;
    },
  };
}

type Recorder = ReturnType<typeof createRecorder>;

function createRecorder(servers: number) {
  const ttft: number[] = [];
  const tpot: number[] = [];
  const sums = Array.from({ length: servers }, () => 0);
  const chosenBy = Array.from({ length: servers }, () => 0);
  return {
    addArrival(chosen: number, ttftMs: number, running: readonly Pick<RunningServer, 'count'>[]): void {
      ttft.push(ttftMs);
      chosenBy[chosen]!++;
      for (const [i, server] of running.entries()) sums[i]! += server.count();
    },
    addTpot(tpotMs: number): void {
      tpot.push(tpotMs);
    },
    finish(): QueueOutcome {
      return {
        ttftMs: Float64Array.from(ttft).sort(),
        tpotMs: Float64Array.from(tpot).sort(),
        meanUnderWay: sums.map((sum) => sum / ttft.length),
        shares: chosenBy.map((count) => count / ttft.length),
      };
    },
  };
}
