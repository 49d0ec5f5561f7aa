import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeMessage, encodeMessage, PredictResponse } from '../../../test/support/grpc/proto-messages.ts';
import { int32, number, text } from '../../../test/support/grpc/wire-values.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { addRow, MAX_INPUTS, startColumns } from './predict-call.ts';
import { PredictResponseEncoder } from './predict-codec-response.ts';

const columns = createPredictColumns(MAX_INPUTS);

const anyAnswer = fc.record({
  targetModel: text,
  modelVersion: text,
  omittedInputs: fc.nat({ max: 4096 }),
  outputs: fc.array(fc.record({ inputId: int32, serverIp: text, ttft: number, tpot: number }), { maxLength: 20 }),
});

test('an answer is encoded to the very bytes that protobufjs encodes', () => {
  const encoder = new PredictResponseEncoder();
  fc.assert(
    fc.property(anyAnswer, ({ outputs, ...summary }) => {
      const source = Buffer.from(outputs.map((output) => output.serverIp).join(''));
      startColumns(columns, source);
      let start = 0;
      for (const { inputId, serverIp } of outputs) {
        const row = addRow(columns);
        columns.inputId[row] = inputId;
        columns.serverIpStart[row] = start;
        columns.serverIpLength[row] = Buffer.byteLength(serverIp);
        start += Buffer.byteLength(serverIp);
      }
      const predicted = {
        ttftMs: Float64Array.from(outputs, (output) => output.ttft),
        tpotMs: Float64Array.from(outputs, (output) => output.tpot),
      };
      const expected = encodeMessage(PredictResponse, {
        outputs: outputs.map(({ inputId, serverIp, ttft, tpot }) => ({
          inputId,
          serverIp,
          predictedTtftMillis: ttft,
          predictedTpotMillis: tpot,
        })),
        metadata: summary,
      });
      assert.deepEqual(Buffer.from(encoder.encode(summary, columns, predicted)), expected);
    }),
    { numRuns: 500 },
  );
});

test('an answer of any size is encoded whole', () => {
  const encoder = new PredictResponseEncoder();
  const serverIp = 'x'.repeat(900);
  startColumns(columns, Buffer.from(serverIp));
  for (let index = 0; index < MAX_INPUTS; index++) columns.serverIpLength[addRow(columns)] = 900;
  const predicted = { ttftMs: new Float64Array(MAX_INPUTS).fill(1.5), tpotMs: new Float64Array(MAX_INPUTS).fill(2) };
  const summary = { targetModel: 'm', modelVersion: 'm@1', omittedInputs: 0 };
  const answer = decodeMessage<{ outputs: { serverIp: string; predictedTpotMillis: number }[] }>(
    PredictResponse,
    encoder.encode(summary, columns, predicted),
  );
  assert.equal(answer.outputs.length, MAX_INPUTS);
  assert.ok(answer.outputs.every((output) => output.serverIp === serverIp && output.predictedTpotMillis === 2));
});
