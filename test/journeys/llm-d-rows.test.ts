/** Rows that the router of llm-d sends: none is lost, and times of routers that do not stream are kept apart. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { nameEndToEnd } from '../../src/prediction/llm-d/training-row-store.ts';
import { listSamples } from '../../src/prediction/observations/sample-store.ts';
import { ENVIRONMENT, entriesOf, findUrl, rowsFrom } from '../support/prediction/llm-d-program.ts';
import {
  createRouter,
  createRouterRow,
  createTtftEntry,
  postJson,
  postStrict,
} from '../support/prediction/llm-d-router.ts';
import { startProgram } from '../support/programs/start-program.ts';
import {
  createStorePlace,
  engines,
  findReasonToSkip,
  openTestStore,
  type StorePlace,
} from '../support/store/engines.ts';

test('end-to-end times of a router that does not stream are answered to it, and leave TTFT as it was', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const base = `${program.httpUrl}/llm-d/quiet`;
  const row = createRouterRow();
  const askTtft = async () => {
    const response = await postJson(`${program.httpUrl}/prediction.v1.PredictionService/Predict`, {
      targetModel: 'quiet',
      inputs: [
        { inputTokenLength: 512, kvCacheUsage: 0.25, numRequestRunning: 4, prefixCacheScore: 0.5, inflightTokens: 900 },
      ],
    });
    return ((await response.json()) as { outputs: { predictedTtftMillis: number }[] }).outputs[0]!.predictedTtftMillis;
  };
  const before = await askTtft();
  const endToEnd = Array.from({ length: 5000 }, () => createTtftEntry(row, 9000, Date.now()));
  assert.equal((await postJson(`${base}/add_training_data_bulk`, { entries: endToEnd })).status, 202);
  assert.equal(await askTtft(), before);
  const [slow] = await postStrict(base, [row]);
  assert.ok(slow!.ttft_ms > 4000, `${slow!.ttft_ms} ms`);

  // It streams from now on.
  const streamed = [
    ...endToEnd.slice(0, 400).map((entry) => ({ ...entry, actual_ttft_ms: 30 })),
    ...entriesOf([row], 'tpot'),
  ];
  assert.equal((await postJson(`${base}/add_training_data_bulk`, { entries: streamed })).status, 202);
  const [fast] = await postStrict(base, [row]);
  assert.ok(fast!.ttft_ms < 300, `${fast!.ttft_ms} ms`);
});

test('rows that name their server or pod type are learned and answered apart, and the others together', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const base = findUrl(program);
  const groups = [
    { changes: { endpoint: '10.0.0.1:8000' }, ttftMs: 40 },
    { changes: { endpoint: '10.0.0.2:8000' }, ttftMs: 800 },
    { changes: { pod_type: 'prefill' }, ttftMs: 3000 },
  ];
  const row = createRouterRow();
  for (let batch = 0; batch < 4; batch++) {
    const entries = groups.flatMap(({ changes, ttftMs }) => {
      const changed = { ...row, ...changes };
      const ttft = Array.from({ length: 50 }, () => createTtftEntry(changed, ttftMs, Date.now()));
      return [...ttft, ...entriesOf([changed], 'tpot')];
    });
    assert.equal((await postJson(`${base}/add_training_data_bulk`, { entries })).status, 202);
  }
  const asked = [...groups.map(({ changes }) => ({ ...row, ...changes })), row];
  const [fast, slow, prefill, unnamed] = (await postStrict(base, asked)).map(({ ttft_ms }) => ttft_ms);
  assert.ok(fast! < 100 && slow! > 500 && prefill! > 2 * slow!, `${fast}, ${slow}, ${prefill} ms`);
  assert.ok(unnamed! > fast! && unnamed! < prefill!, `${unnamed} ms without a server`);
});

test('a row with counts that no server has is refused by name, and its model goes on learning', async () => {
  await using program = await startProgram(ENVIRONMENT);
  const post = (entries: readonly object[]) => postJson(`${findUrl(program)}/add_training_data_bulk`, { entries });
  const [ttft] = entriesOf(rowsFrom(0, 1), 'ttft');
  const huge = { ...ttft!, prefill_tokens_in_flight: 1.7e308, decode_tokens_in_flight: 1.7e308 };
  const refused = await post([huge]);
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /"prefill_tokens_in_flight"\],"msg":"Input should be less than or equal to/);
  assert.equal((await post([ttft!])).status, 202);
  assert.equal((await post(entriesOf(rowsFrom(0, 1), 'tpot'))).status, 202);
});

async function countSamples(place: StorePlace, targetModel: string): Promise<number> {
  await using store = await openTestStore(place);
  return (await listSamples(store, targetModel, { limit: 100_000 })).length;
}

for (const engine of engines)
  test(`kill -9 after 202 loses no row, and a refused batch leaves none (${engine})`, {
    skip: findReasonToSkip(engine),
  }, async () => {
    const place = await createStorePlace(engine);
    const environment =
      place.databaseUrl === undefined
        ? ENVIRONMENT
        : { ...ENVIRONMENT, DATABASE_URL: place.databaseUrl, SECRET_KEYS: Buffer.alloc(32, 7).toString('base64') };
    try {
      const first = await startProgram(environment, place.dataDir);
      const router = createRouter({ predictionUrl: findUrl(first), trainingUrl: findUrl(first) });
      router.addTrainingData([
        ...entriesOf(rowsFrom(0, 1500), 'ttft'),
        { ...entriesOf(rowsFrom(0, 1), 'tpot')[0]!, prefix_cache_score: 2 },
      ]);
      assert.equal(await router.flush(), 422);
      router.addTrainingData([...entriesOf(rowsFrom(0, 1500), 'ttft'), ...entriesOf(rowsFrom(0, 500), 'tpot')]);
      assert.equal(await router.flush(), 202);
      router.addTrainingData(entriesOf(rowsFrom(0, 30), 'ttft'));
      assert.equal(await router.flush(), 202);
      await first.kill();
      assert.equal(await countSamples(place, 'm'), 2000);
      await using second = await startProgram(environment, place.dataDir);
      assert.equal(
        (await postJson(`${findUrl(second)}/add_training_data_bulk`, { entries: entriesOf(rowsFrom(0, 1), 'tpot') }))
          .status,
        202,
      );
      await second.stop();
      assert.equal(await countSamples(place, 'm'), 2031);
    } finally {
      rmSync(place.dataDir, { recursive: true, force: true });
    }
  });

test('batches of one model to two processes are counted together, and none of their rows is lost', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const place = await createStorePlace('postgres');
  const shared = {
    ...ENVIRONMENT,
    DATABASE_URL: place.databaseUrl!,
    SECRET_KEYS: Buffer.alloc(32, 7).toString('base64'),
  };
  try {
    await using one = await startProgram(shared);
    await using other = await startProgram(shared);
    const urls = [findUrl(one), findUrl(other)];
    const sent = Array.from({ length: 10 }, (_, i) =>
      postJson(`${urls[i % 2]}/add_training_data_bulk`, { entries: entriesOf(rowsFrom(i, 500), 'ttft') }),
    );
    for (const response of await Promise.all(sent)) assert.equal(response.status, 202);
    assert.equal(await countSamples(place, 'm'), 0);
    assert.equal(await countSamples(place, nameEndToEnd('m')), 5000);
  } finally {
    rmSync(place.dataDir, { recursive: true, force: true });
  }
});
