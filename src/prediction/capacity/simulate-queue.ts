/**
 * Simulates a pool under Poisson arrivals, whose servers have the latencies that were learned from samples.
 *
 * | symbol   | meaning                                                        | unit      | in the code |
 * |----------|----------------------------------------------------------------|-----------|-------------|
 * | s        | a server                                                       |           | `QueueServer` |
 * | λ        | rate of arrivals                                               | 1/s       | `requestsPerSecond` |
 * | n, n(t)  | requests under way at s, waiting and running                   |           | `underWay`, `count` |
 * | t_i, F_i | arrival and first token of request i                           | ms        | `nowMs`, `firstTokenMs` |
 * | S_i      | how long the server computes its prompt                        | ms        | `promptTimes.draw` |
 * | ρ(t)     | pace at which s computes prompts                               | tokens/ms | `prompts.readPace` |
 * | P_s(n)   | time of a token of an answer at n, while no prompt is computed | ms        | `tpot` (`tpot-curve.ts`) |
 * | c_s      | time that a prompt token takes from the answers                | ms        | `cost` (`tpot-curve.ts`) |
 * | f        | observed TPOT divided by that of the curve                     |           | `factor` |
 * | stay     | from the arrival to the last token                             | ms        | |
 *
 * The state of a server is n, its requests under way, and its queue of prompts (`prompt-queue.ts`). A request that
 * arrives at server s
 *   1. is one of the requests that s had, with what s had cached of its prompt;
 *   2. waits until the prompts before it are computed, and has its first token after a time that such a prompt took at
 *      about n (`prompt-times.ts`);
 *   3. then gets tokens at the pace of the server: in dt it gets dt · (1 − c_s ρ(t)) / (f · P_s(n(t))) of them, with f drawn
 *      from the factors that were observed at about this n;
 *   4. leaves with its last token.
 * So rate, concurrency and latency agree without being forced to, as in Little's law n = λ · E[stay], and the variance of arrivals
 * and prompts is part of the result, which a fixed point of means leaves out. All answers of a server share one pace, so its
 * tokens are counted in a virtual time of its own, as in processor sharing.
 */
import { createEventQueue, type EventQueue } from '../simulator/event-queue.ts';
import { drawExponential, type Random } from '../simulator/random-draws.ts';
import type { LoadCurve } from './load-curve.ts';
import { createPromptQueue } from './prompt-queue.ts';
import { countUncached, type PromptTimes } from './prompt-times.ts';
import type { ServiceModel, ServiceRequest } from './service-model.ts';
import type { TpotCurve } from './tpot-curve.ts';

export interface QueueServer {
  readonly name: string;
  readonly load: LoadCurve;
  readonly tpot: TpotCurve;
  readonly promptTimes: PromptTimes;
  /** The requests that it had, to draw from. */
  readonly requests: readonly ServedRequest[];
}

export interface ServedRequest extends ServiceRequest {
  /** Undefined when it is not known. */
  readonly outputTokens: number | undefined;
}

export interface QueuePool {
  readonly servers: readonly QueueServer[];
  readonly model: ServiceModel;
  /** The mean, for requests of unknown length. In a queue with processor sharing the rest of the distribution matters little (insensitivity). */
  readonly outputTokens: number;
}

export interface QueueRun {
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly random: Random;
}

export interface QueueOutcome {
  /** In rising order. */
  readonly ttftMs: Float64Array;
  readonly tpotMs: Float64Array;
  /** By server, in their order: the mean of its requests under way at an arrival. */
  readonly meanUnderWay: readonly number[];
  /** By server: the share of the requests that it got. */
  readonly shares: readonly number[];
}

/** Warm-up: the pool is empty at first, so the first part of a run underestimates the load. */
const WARM_UP = 0.2;
/** A server with this many requests under way is overloaded, and the run ends. */
const MAX_UNDER_WAY = 20_000;

/** Each request goes to a server with the fewest under way. Undefined if a server is overloaded. */
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
    const { promptTimes, tpot, requests } = pool.servers[chosen]!;
    const request = requests[Math.floor(random() * requests.length)]!;
    const promptTokens = countUncached(request);
    const startMs = Math.max(nowMs, servers[chosen]!.promptsUntilMs());
    const met = { underWay, tokens: promptTokens, isQueued: startMs > nowMs };
    const firstTokenMs = startMs + promptTimes.draw(met, random);
    const furtherTokens = drawFurtherTokens(request, pool.outputTokens, random);
    const { factors } = tpot.near(underWay);
    const factor = factors[Math.floor(random() * factors.length)]!;
    const isRecorded = i >= WARM_UP * run.requests;
    if (isRecorded) recorder.addArrival(chosen, firstTokenMs - nowMs, servers);
    servers[chosen]!.add(nowMs, { promptTokens, furtherTokens, factor, isRecorded, firstTokenMs });
  }
  for (const server of servers) server.advance(Number.POSITIVE_INFINITY);
  return recorder.finish();
}

/** After the first one. */
function drawFurtherTokens({ outputTokens }: ServedRequest, mean: number, random: Random): number {
  return outputTokens === undefined ? Math.floor(drawExponential(random, mean - 0.5)) : Math.max(0, outputTokens - 1);
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
  readonly promptTokens: number;
  readonly furtherTokens: number;
  readonly factor: number;
  readonly isRecorded: boolean;
  readonly firstTokenMs: number;
}

interface RunningServer {
  count(): number;
  /** When all prompts that it has are computed. */
  promptsUntilMs(): number;
  add(nowMs: number, answer: Answer): void;
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
  let tokensPerMs = tpot.paceAt(0, 0);
  const prompts = createPromptQueue();

  function moveTo(nowMs: number): void {
    virtualTokens += (nowMs - atMs) * tokensPerMs;
    atMs = nowMs;
  }

  function changeCount(by: number): void {
    count += by;
    tokensPerMs = tpot.paceAt(count, prompts.readPace(atMs));
  }

  function finish({ furtherTokens, isRecorded, firstTokenMs }: Answer): void {
    if (isRecorded && furtherTokens > 0) recorder.addTpot((atMs - firstTokenMs) / furtherTokens);
    changeCount(-1);
  }

  /** While prompts take more than the whole server, answers lose progress, and no request ends. */
  function nextEndMs(): number {
    const endTokens = answering.nextMs();
    if (endTokens === undefined) return Number.POSITIVE_INFINITY;
    if (endTokens <= virtualTokens) return atMs;
    return tokensPerMs > 0 ? atMs + (endTokens - virtualTokens) / tokensPerMs : Number.POSITIVE_INFINITY;
  }

  function beginAnswer(answer: Answer): void {
    answering.push(virtualTokens + answer.furtherTokens * answer.factor, answer);
    // The next prompt has its turn: the pace is computed again, with as many requests.
    changeCount(0);
  }

  return {
    count: () => count,
    promptsUntilMs: () => prompts.busyUntilMs(),
    add(nowMs, answer) {
      const { promptTokens: tokens, firstTokenMs } = answer;
      waiting.push(firstTokenMs, answer);
      virtualTokens -= tpot.countDelayed(count, prompts.add(nowMs, { tokens, firstTokenMs }));
      changeCount(1);
    },
    advance(nowMs) {
      for (;;) {
        const firstTokenMs = waiting.nextMs() ?? Number.POSITIVE_INFINITY;
        const endMs = nextEndMs();
        const nextMs = Math.min(firstTokenMs, endMs);
        if (nextMs > nowMs || nextMs === Number.POSITIVE_INFINITY) break;
        moveTo(nextMs);
        if (endMs <= firstTokenMs) finish(answering.pop()!.event);
        else beginAnswer(waiting.pop()!.event);
      }
      if (nowMs < Number.POSITIVE_INFINITY) moveTo(nowMs);
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
