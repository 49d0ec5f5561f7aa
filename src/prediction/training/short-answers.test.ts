import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findTimeModel } from '../model/model.ts';
import { createSlotEvaluator, readMedian } from '../model/slot-evaluator.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import { trainModel } from './train-model.ts';

/** Sixty of a hundred answers have two tokens, whose time per token is three times that of the long ones. */
function learnTpot(shortTokens: number | undefined): number {
  const table = createObservationTable();
  for (let i = 0; i < 400; i++) {
    const isShort = (i * 7) % 10 < 6;
    const metrics = fillMetrics(() => 0);
    const input = { podType: '', serverIp: 's', ...metrics, inputTokenLength: 100, numRequestRunning: i % 8 };
    const observed = { ttftMs: 50, tpotMs: isShort ? 30 : 10, outputTokens: isShort ? shortTokens : 300 };
    appendObservation(table, { targetModel: '', input, atMs: undefined, ...observed });
  }
  const model = trainModel('m@1', table);
  const evaluator = createSlotEvaluator(findTimeModel(model, '', 'ttft'), findTimeModel(model, '', 'tpot'), 512);
  return readMedian(evaluator.evaluate(table, []).tpot, 0);
}

test('a model learns the time per token of long answers, though most answers are short', () => {
  const ofUnknownLength = learnTpot(undefined);
  assert.ok(ofUnknownLength > 14, `${ofUnknownLength}`);
  assert.ok(learnTpot(2) < 12, `${learnTpot(2)}`);
});
