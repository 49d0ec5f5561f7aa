/** Chooses a server for each request by predicted latency; without an answer in time, the server with the fewest requests (fallback). */
import { randomUUID } from 'node:crypto';
import { toInt32 } from './int32.ts';
import { createLoad, type Load } from './load.ts';
import type { Client, Input, Reported, Stats } from './messages.ts';
import type { Metrics } from './servers.ts';

const ALL_OMITTED =
  'the answer has no candidate: their numbers are negative, not finite or old, or the service has no fresh load of their servers';

export interface RouterOptions {
  readonly client: Client;
  /** The name under which the service learns, for example `qwen3-32b`. */
  readonly model: string;
  /** How long a request waits for its prediction; 50 by default. */
  readonly deadlineMs?: number;
  /** Older metrics do not count, and their server is not chosen unless all have older ones; 5 s by default. */
  readonly maxMetricsAgeMs?: number;
}

/** A request to the chosen server. Call `firstToken` and `finished`, or `failed`. */
export interface Choice {
  readonly address: string;
  /** The version that answered; empty after a fallback, for which `error` has the reason. */
  readonly modelVersion: string;
  readonly error: unknown;
  /** Reports the time from dispatch to the first token. */
  firstToken(ttftMillis: number): void;
  /** Reports the time from the first token to the last one. */
  finished(elapsedMillis: number, outputTokens: number): void;
  failed(): void;
}

export interface Router {
  /** Takes the metrics just read from a server. Metrics that are negative or not finite are ignored. */
  setMetrics(address: string, metrics: Metrics): void;
  /** Rejects only without candidates. Rounds `promptTokens`. Without an answer, chooses the server with the fewest requests. */
  choose(promptTokens: number, candidates: readonly string[]): Promise<Choice>;
  /** Returns what became of the reports so far. */
  stats(): Stats;
  close(): Promise<Reported>;
}

export function createRouter(options: RouterOptions): Router {
  const { client, model, deadlineMs = 50, maxMetricsAgeMs = 5000 } = options;
  const load = createLoad({ maxMetricsAgeMs, monotonicMs: () => performance.now() });
  return {
    setMetrics: (address, metrics) => load.setMetrics(address, metrics),
    stats: () => client.stats(),
    close: () => client.close(),
    async choose(promptTokens, candidates) {
      if (candidates.length === 0) throw new Error('Cannot choose a server: there are no candidates');
      const inputs = load.ask(toInt32(promptTokens), candidates);
      const answer = await client.predict(model, inputs, deadlineMs).catch((error: unknown) => ({ error }));
      const best = 'outputs' in answer ? load.choose(candidates, answer.outputs) : undefined;
      const choice = follow({ client, load, model, input: inputs[best ?? load.chooseLeastLoaded(candidates)]! });
      if ('error' in answer) return { ...choice, modelVersion: '', error: answer.error };
      if (best === undefined) return { ...choice, modelVersion: '', error: new Error(ALL_OMITTED) };
      return { ...choice, modelVersion: answer.metadata.modelVersion, error: undefined };
    },
  };
}

interface Followed {
  readonly client: Client;
  readonly load: Load;
  readonly model: string;
  readonly input: Input;
}

function follow({ client, load, model, input }: Followed): Omit<Choice, 'modelVersion' | 'error'> {
  const requestId = randomUUID();
  const ended = load.dispatch(input.serverIp, input.inputTokenLength);
  let isOver = false;
  client.report({ dispatched: { requestId, targetModel: model, input, at: readTime() } });
  return {
    address: input.serverIp,
    firstToken: (ttftMillis) => client.report({ firstToken: { requestId, ttftMillis, at: readTime() } }),
    finished(elapsedMillis, outputTokens) {
      if (isOver) return;
      isOver = true;
      const tokens = toInt32(outputTokens);
      ended(tokens);
      const tpot = tokens > 1 ? { tpotMillis: elapsedMillis / (tokens - 1) } : {};
      client.report({ finished: { requestId, outputTokens: tokens, ...tpot, at: readTime() } });
    },
    failed() {
      if (!isOver) ended(0);
      isOver = true;
    },
  };
}

function readTime(): string {
  return new Date().toISOString();
}
