/** The endpoint at the ends of all ranges, and over samples without what it needs: an answer has numbers, a refusal a field. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { OpenAPIHono } from '@hono/zod-openapi';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import type { HttpEnv } from '../../http/context.ts';
import { respondToError } from '../../http/failure-response.ts';
import { createLog } from '../../telemetry/log.ts';
import type { LatencyModel } from '../model/model.ts';
import { MAX_MS, MIN_OBSERVED_MS } from '../schema/milliseconds.ts';
import type { Observation } from '../schema/observation.ts';
import { trainModel } from '../training/train-model.ts';
import { createCapacityRoutes } from './capacity-routes.ts';
import { LIMIT_RANGES } from './limit-ranges.ts';
import { computeCapacity } from './read-capacity.ts';

const usual = observePool({ rows: 600, servers: [1, 1.6] });
let model: LatencyModel;
before(() => {
  model = trainModel('m@1', tabulate(usual));
});

type Change = (sample: Observation, i: number) => Observation;

function change(by: Change): readonly Observation[] {
  return usual.map(by);
}

function load(waiting: number, running: number): Change {
  return (sample) => ({
    ...sample,
    input: { ...sample.input, numRequestWaiting: waiting, numRequestRunning: running },
  });
}

const START_MS = 1_700_000_000_000;
const sampleSets: Readonly<Record<string, readonly Observation[]>> = {
  usual,
  'one value': change((_, i) => ({ ...usual[0]!, atMs: START_MS + 500 * i })),
  'one value at one time': change(() => usual[0]!),
  'one value without a time': change(() => ({ ...usual[0]!, atMs: undefined })),
  'eight under way at every time': change(load(0, 8)),
  'nothing under way at any time': change(load(0, 0)),
  'waits for requests that no sample shows': change((sample, i) => ({
    ...load(5, 10)(sample, i),
    atMs: START_MS + 100_000 * i,
  })),
  'the shortest times': change((sample) => ({ ...sample, ttftMs: MIN_OBSERVED_MS, tpotMs: MIN_OBSERVED_MS })),
  'the longest times': change((sample) => ({ ...sample, ttftMs: MAX_MS, tpotMs: MAX_MS })),
  'answers of one token': change((sample) => ({ ...sample, outputTokens: 1 })),
  'answers of very unlike lengths': change((sample, i) => ({ ...sample, outputTokens: i % 50 === 0 ? 1_000_000 : 1 })),
  'prompts of no tokens': change((sample) => ({ ...sample, input: { ...sample.input, inputTokenLength: 0 } })),
  'prompts that are all cached': change((sample) => ({ ...sample, input: { ...sample.input, prefixCacheScore: 1 } })),
  'one server without TPOT': change((sample) =>
    sample.input.serverIp === '10.0.0.1' ? { ...sample, tpotMs: undefined } : sample,
  ),
  'one server without TTFT': change((sample) =>
    sample.input.serverIp === '10.0.0.1' ? { ...sample, ttftMs: undefined } : sample,
  ),
  'no TTFT': change((sample) => ({ ...sample, ttftMs: undefined })),
  'few samples': usual.slice(0, 49),
  'no samples': [],
};

function ask(samples: readonly Observation[], query: string): Response | Promise<Response> {
  const routes = createCapacityRoutes({
    rule: { mode: 'off', verifyToken: () => Promise.reject(new Error('not called')) },
    ask: async (order) => ({ version: 1, ...computeCapacity({ model, samples }, order, START_MS) }),
  });
  const app = new OpenAPIHono<HttpEnv>();
  app.use(async (c, next) => {
    c.set('log', createLog('silent'));
    await next();
  });
  app.onError((error, c) => respondToError(error, { errors: 'problem' }, c));
  app.route('/prediction', routes);
  return app.request(`/prediction/capacity?${query}`);
}

const FIELDS = ['model', 'ttft_ms', 'tpot_ms', 'quantile', 'output_tokens', 'prompt_tokens', 'servers', 'pod_type'];

test('the load of a server is that of its newest request, however late its sample was stored', () => {
  const nowMs = usual.at(-1)!.atMs!;
  const meet = (underWay: number, atMs: number): Observation => ({ ...load(0, underWay)(usual[0]!, 0), atMs });
  const samples = [...usual, meet(7, nowMs + 1), meet(1, nowMs - 50_000), meet(2, nowMs + 86_400_000)];
  const order = {
    limits: { ttftMs: undefined, tpotMs: 60, quantile: 0.9 },
    promptTokens: undefined,
    outputTokens: 100,
    servers: [usual[0]!.input.serverIp],
    podType: '',
  };
  const { servers } = computeCapacity({ model, samples }, order, nowMs);
  assert.deepEqual(servers[0]!.reported, { server: usual[0]!.input.serverIp, underWay: 7, atMs: nowMs + 1 });
});

interface Answer {
  readonly limited_by: string;
  readonly requests_per_second: number;
  readonly concurrency: number;
  readonly ttft_ms: number;
  readonly tpot_ms: number | null;
  readonly servers: readonly { readonly requests_per_second: number; readonly concurrency: number }[];
}

async function checkAnswer(samples: readonly Observation[], query: string, canLackTpot: boolean): Promise<void> {
  const response = await ask(samples, query);
  const text = await response.text();
  const about = `${query}: ${response.status} ${text}`;
  if (response.status >= 400 && response.status < 500) {
    assert.ok(FIELDS.includes((JSON.parse(text) as { readonly field: string }).field), about);
    return;
  }
  assert.equal(response.status, 200, about);
  const answer = JSON.parse(text) as Answer;
  if (answer.limited_by === 'idle') return;
  const { requests_per_second: rate, concurrency, ttft_ms: ttftMs, tpot_ms: tpotMs } = answer;
  // JSON has null for what is not finite.
  const numbers = [rate, concurrency, ttftMs, ...(canLackTpot && tpotMs === null ? [] : [tpotMs])];
  const ofServers = answer.servers.flatMap((server) => [server.requests_per_second, server.concurrency]);
  assert.ok([...numbers, ...ofServers].every((value) => Number.isFinite(value) && value! >= 0) && rate > 0, about);
}

const { milliseconds, outputTokens, promptTokens, quantile } = LIMIT_RANGES;
const limits = [
  `ttft_ms=${milliseconds.minimum}`,
  `ttft_ms=${milliseconds.maximum}`,
  `tpot_ms=${milliseconds.minimum}`,
  `tpot_ms=${milliseconds.maximum}`,
  `ttft_ms=${milliseconds.maximum}&tpot_ms=${milliseconds.maximum}`,
  'ttft_ms=1500&tpot_ms=30',
];
const outputs = [outputTokens.minimum, 2, outputTokens.maximum];
const prompts = ['', `&prompt_tokens=${promptTokens.minimum}`, `&prompt_tokens=${promptTokens.maximum}`];
const quantiles = [quantile.minimum, quantile.maximum];

/** Every end of a range with every other at least once. */
const extremes = Array.from({ length: limits.length * prompts.length }, (_, i) => {
  const block = Math.floor(i / limits.length);
  const output = outputs[(i + block) % outputs.length]!;
  const share = quantiles[(i + block) % quantiles.length]!;
  return {
    output,
    query: `model=m&${limits[i % limits.length]}&output_tokens=${output}&quantile=${share}${prompts[block]}`,
  };
});

for (const { output, query } of extremes)
  test(`GET /prediction/capacity?${query} is answered with numbers, or refused by a field`, () =>
    checkAnswer(usual, query, output === 1));

const ORDINARY = 'model=m&output_tokens=150&quantile=0.9';
for (const [title, samples] of Object.entries(sampleSets))
  test(`samples with ${title} are answered with numbers, or refused by a field`, async () => {
    for (const limit of ['ttft_ms=1500&tpot_ms=30', `ttft_ms=${milliseconds.maximum}`, 'tpot_ms=25'])
      await checkAnswer(samples, `${ORDINARY}&${limit}`, title === 'answers of one token');
  });

test('answers of one token have a capacity by TTFT, and no TPOT', async () => {
  const response = await ask(usual, 'model=m&ttft_ms=3000&output_tokens=1');
  const answer = (await response.json()) as Answer;
  assert.equal(answer.tpot_ms, null);
  assert.ok(answer.requests_per_second > 0.1 && answer.ttft_ms <= 3000, JSON.stringify(answer));
});
