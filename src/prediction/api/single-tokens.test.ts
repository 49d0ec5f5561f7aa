import assert from 'node:assert/strict';
import { encodeMessage } from '../../../test/support/grpc/proto-messages.ts';
import { BatchMessage } from '../../../test/support/prediction/observation-server.ts';
import { input, openSink } from '../../../test/support/prediction/observation-sink.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { readJsonBatch } from '../observations/event-json.ts';
import { insertSampleStatement, listSamples } from '../observations/sample-store.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import { createPredictColumns, METRIC_COLUMNS } from '../schema/columns.ts';
import { createObservationService } from './observation-service.ts';

const TPOT_MS = 25;
const CLOSED_MS = 1;

/** Requests of which every second one has one token, with the time until its stream was closed in place of a TPOT. */
function report(requests: number): object[] {
  return Array.from({ length: requests }, (_, i) => {
    const requestId = `r${i}`;
    const { podType, serverIp, ...metrics } = input;
    const answer =
      i % 2 === 0 ? { tpotMillis: CLOSED_MS, outputTokens: 1 } : { tpotMillis: TPOT_MS, outputTokens: 200 };
    return [
      { dispatched: { requestId, targetModel: 'm', input: { podType, serverIp, ...metrics } } },
      { firstToken: { requestId, ttftMillis: 120 } },
      { finished: { requestId, ...answer } },
    ];
  }).flat();
}

function predictTpot(predictor: SwappablePredictor): number {
  const columns = createPredictColumns(1);
  columns.count = 1;
  columns.source = Buffer.from(input.serverIp);
  columns.podTypes = [input.podType];
  columns.serverIpLength[0] = columns.source.length;
  for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  predictor.predict('m', columns, predicted);
  return predicted.tpotMs[0]!;
}

for (const encoding of ['JSON', 'protobuf'] as const)
  forEachEngine(
    `the TPOT of one token is neither learned nor stored when it is reported as ${encoding}`,
    async (store) => {
      const { sink, world, predictor } = openSink(store);
      const service = createObservationService({ sink, world });
      const events = report(200);
      if (encoding === 'JSON') await service.reportJson(readJsonBatch({ events }));
      else await service.reportBytes(encodeMessage(BatchMessage, { events }));
      assert.ok(Math.abs(predictTpot(predictor) / TPOT_MS - 1) < 0.05, `${predictTpot(predictor)} ms`);
      const stored = await listSamples(store, 'm', { limit: 1000 });
      const tpots = stored.flatMap(({ observation }) => observation.tpotMs ?? []);
      assert.deepEqual([tpots.length, new Set(tpots)], [100, new Set([TPOT_MS])]);
    },
  );

forEachEngine('a TPOT of one token that an earlier program stored is left out', async (store) => {
  const observation = { targetModel: 'm', input, atMs: 1, ttftMs: 120, tpotMs: CLOSED_MS, outputTokens: 1 };
  await store.writeAll([insertSampleStatement({ id: 1, observation })]);
  const [sample] = await listSamples(store, 'm', { limit: 1 });
  assert.deepEqual([sample?.observation.ttftMs, sample?.observation.tpotMs], [120, undefined]);
});

forEachEngine('an observation with the TPOT of one token alone is refused by name', async (store) => {
  const { sink, world } = openSink(store);
  const service = createObservationService({ sink, world });
  const observation = { targetModel: 'm', input: { inputTokenLength: 5 }, tpotMillis: CLOSED_MS, outputTokens: 1 };
  const { refusals } = (await service.reportJson(readJsonBatch({ events: [{ observation }] }))) as {
    readonly refusals: readonly { readonly reason: string }[];
  };
  assert.match(refusals[0]!.reason, /^ttft_millis must be given for one output token, which has no tpot_millis/);
});
