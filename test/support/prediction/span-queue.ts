/** Opens a queue of spans as vLLM sends them, and makes these. */
import { Registry } from 'prom-client';
import type { Store } from '../../../src/database/store.ts';
import type { Attributes, Span } from '../../../src/prediction/formats/spans/span.ts';
import { createObservationSink } from '../../../src/prediction/observations/observation-sink.ts';
import { listSamples } from '../../../src/prediction/observations/sample-store.ts';
import { createPredictor } from '../../../src/prediction/online/predictor.ts';
import { createSpanQueue } from '../../../src/prediction/traces/learn-from-spans.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { createStillWorld } from '../basics/still-world.ts';

export const HOLD_MS = 10_000;

interface QueueLimits {
  readonly maxUnderWay?: number;
  readonly maxWaiting?: number;
}

/** A queue of spans on this store, whose learned samples are in the same store. */
export function openQueue(store: Store, limits: QueueLimits = {}) {
  const world = createStillWorld();
  const metrics = new Registry();
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) });
  const nothing = () => {};
  const sink = createObservationSink({
    store,
    world,
    metrics,
    predictor: createPredictor(),
    onDrift: nothing,
    onObserved: nothing,
  });
  const settings = { kvCapacityTokens: 1000, holdMs: HOLD_MS };
  const queue = createSpanQueue({ store, world, log, metrics, sink, ...settings, ...limits });
  return { queue, world, metrics, lines };
}

export interface TestRequest {
  readonly id: string;
  readonly startMs: number;
  readonly ttftMs: number;
  readonly latencyMs: number;
  readonly server?: string;
  readonly more?: readonly (readonly [string, string | number])[];
}

/** The span that vLLM sends for a request. */
export function spanOf({ id, startMs, ttftMs, latencyMs, server = 's1', more = [] }: TestRequest): Span {
  const attributes: Attributes = new Map<string, string | number>([
    ['gen_ai.response.model', 'm'],
    ['gen_ai.usage.prompt_tokens', 100],
    ['gen_ai.usage.completion_tokens', 11],
    ['gen_ai.latency.time_to_first_token', ttftMs / 1000],
    ['gen_ai.latency.e2e', latencyMs / 1000],
    ...more,
  ]);
  return {
    traceId: 't',
    spanId: id,
    startMs,
    isFailed: false,
    attributes,
    resource: new Map([['service.instance.id', server]]),
  };
}

/** Lists what was learned, in the order of time. */
export async function listLearned(store: Store) {
  const samples = await listSamples(store, 'm', { limit: 100 });
  return samples
    .map(({ observation: { atMs, input, ttftMs, tpotMs } }) => [
      atMs,
      input.serverIp,
      input.numRequestWaiting,
      input.numRequestRunning,
      ttftMs,
      tpotMs,
    ])
    .sort((a, b) => Number(a[0]) - Number(b[0]));
}

/** A request that began at 1 s and took 600 ms. */
export function createRequest(): TestRequest {
  return { id: 'a', startMs: 1000, ttftMs: 100, latencyMs: 600 };
}
