/**
 * Simulates a pool under Poisson arrivals with latencies that were learned from samples.
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
 *   1. is drawn from the requests of s in the samples, with the part of its prompt that s had cached;
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
  /** The requests of its samples, to draw from. */
  readonly requests: readonly ServedRequest[];
}

export interface ServedRequest extends ServiceRequest {
  /** Undefined when not known. */
  readonly outputTokens: number | undefined;
}

export interface QueuePool {
  readonly servers: readonly QueueServer[];
  readonly model: ServiceModel;
  /** The mean, for requests of unknown length. With processor sharing, the shape of the distribution matters little (insensitivity). */
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
  /** Each server's mean number of requests under way at an arrival, in the order of the servers. */
  readonly meanUnderWay: readonly number[];
  /** The share of the requests that each server got. */
  readonly shares: readonly number[];
}

/** Warm-up: the pool is empty at first, so the first part of a run underestimates the load. */
const WARM_UP = 0.2;
/** A server with this many requests under way is overloaded, and the run ends. */
const MAX_UNDER_WAY = 20_000;

/** Sends each request to a server with the fewest under way. Returns undefined if a server is overloaded. */
export function simulateQueue(pool: QueuePool, run: QueueRun): QueueOutcome | undefined {
  const { random } = run;
  const recorder = createRecorder(pool.servers.length);
  const fleet = openFleet(pool, recorder);
  const gapMs = 1000 / run.requestsPerSecond;
  let nowMs = 0;
  for (let i = 0; i < run.requests; i++) {
    nowMs += drawExponential(random, gapMs);
    fleet.advance(nowMs);
    const chosen = chooseLeast(fleet.counts, random);
    if (fleet.counts[chosen]! >= MAX_UNDER_WAY) return undefined;
    const met = { nowMs, underWay: fleet.counts[chosen]!, busyUntilMs: fleet.promptsUntilMs(chosen) };
    const answer = drawAnswer(pool.servers[chosen]!, met, { random, meanTokens: pool.outputTokens });
    const isRecorded = i >= WARM_UP * run.requests;
    if (isRecorded) recorder.addArrival(chosen, answer.firstTokenMs - nowMs, fleet.counts);
    fleet.add(chosen, nowMs, { ...answer, isRecorded });
  }
  fleet.advance(Number.POSITIVE_INFINITY);
  // Answers that never end have no latency.
  return fleet.counts.some((count) => count > 0) ? undefined : recorder.finish();
}

/** What a request meets at its server. */
interface MetServer {
  readonly nowMs: number;
  readonly underWay: number;
  /** When the prompts before this one are computed. */
  readonly busyUntilMs: number;
}

/** Draws one of the requests in the server's samples, and its times. */
function drawAnswer(
  { promptTimes, tpot, requests }: QueueServer,
  { nowMs, underWay, busyUntilMs }: MetServer,
  { random, meanTokens }: { readonly random: Random; readonly meanTokens: number },
): Omit<Answer, 'isRecorded'> {
  const request = requests[Math.floor(random() * requests.length)]!;
  const promptTokens = countUncached(request);
  const startMs = Math.max(nowMs, busyUntilMs);
  const firstTokenMs =
    startMs + promptTimes.draw({ underWay, tokens: promptTokens, isQueued: startMs > nowMs }, random);
  const furtherTokens = drawFurtherTokens(request, meanTokens, random);
  const { factors } = tpot.near(underWay);
  const factor = factors[Math.floor(random() * factors.length)]!;
  return { promptTokens, furtherTokens, factor, firstTokenMs };
}

/** Returns the tokens after the first one. An unknown length is drawn from a geometric distribution with this mean. */
function drawFurtherTokens({ outputTokens }: ServedRequest, mean: number, random: Random): number {
  if (outputTokens !== undefined) return Math.max(0, outputTokens - 1);
  return Math.floor(drawExponential(random, 1 / Math.log(mean / (mean - 1))));
}

/** Ties are broken at random: the first server must not get all requests of an idle pool. */
function chooseLeast(counts: Int32Array, random: Random): number {
  const start = counts.length === 1 ? 0 : Math.floor(random() * counts.length);
  let best = start;
  for (let at = start + 1; at < counts.length; at++) if (counts[at]! < counts[best]!) best = at;
  for (let at = 0; at < start; at++) if (counts[at]! < counts[best]!) best = at;
  return best;
}

interface Fleet {
  /** The requests under way of each server. */
  readonly counts: Int32Array;
  /** Advances the servers at which an answer begins or ends by then. */
  advance(nowMs: number): void;
  /** Returns when all present prompts of the server are computed. */
  promptsUntilMs(server: number): number;
  add(server: number, nowMs: number, answer: Answer): void;
}

/** Skips servers without an event: in a pool of hundreds, that is most of them between two arrivals. */
function openFleet({ servers }: QueuePool, recorder: Pick<Recorder, 'addTpot'>): Fleet {
  const running = servers.map((server) => openServer(server, recorder));
  const counts = new Int32Array(running.length);
  /** The time of the next event at each server. */
  const nextMs = new Float64Array(running.length).fill(Number.POSITIVE_INFINITY);

  function readServer(i: number): void {
    counts[i] = running[i]!.count();
    nextMs[i] = running[i]!.nextMs();
  }

  return {
    counts,
    advance(nowMs) {
      for (let i = 0; i < nextMs.length; i++) {
        if (nextMs[i]! > nowMs || nextMs[i] === Number.POSITIVE_INFINITY) continue;
        running[i]!.advance(nowMs);
        readServer(i);
      }
    },
    promptsUntilMs: (server) => running[server]!.promptsUntilMs(),
    add(server, nowMs, answer) {
      running[server]!.advance(nowMs);
      running[server]!.add(nowMs, answer);
      readServer(server);
    },
  };
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
  /** Returns when an answer begins or ends next; infinity without one. */
  nextMs(): number;
  /** Returns when all present prompts are computed. */
  promptsUntilMs(): number;
  add(nowMs: number, answer: Answer): void;
  advance(nowMs: number): void;
}

function openServer({ tpot }: QueueServer, recorder: Pick<Recorder, 'addTpot'>): RunningServer {
  const waiting: EventQueue<Answer> = createEventQueue();
  /** The answers in the order of the virtual time at which they end. */
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
    // The next prompt is computed from now on, which changes the pace and not the count.
    changeCount(0);
  }

  return {
    count: () => count,
    nextMs: () => Math.min(waiting.nextMs() ?? Number.POSITIVE_INFINITY, nextEndMs()),
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
    addArrival(chosen: number, ttftMs: number, counts: Int32Array): void {
      ttft.push(ttftMs);
      chosenBy[chosen]!++;
      for (let i = 0; i < counts.length; i++) sums[i]! += counts[i]!;
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
