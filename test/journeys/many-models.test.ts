import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { startProgram } from '../support/programs/start-program.ts';

const MODELS = 20_000;
const EVENTS_AT_ONCE = 4000;

function toLine(model: number): string {
  const input = { serverIp: `10.0.${model >> 8}.${model & 255}`, inputTokenLength: 100 };
  return JSON.stringify({ observation: { targetModel: `model-${model}`, input, ttftMillis: 50 } });
}

test('a program that received events of 20,000 target models stores all of them at the stop, and saves few live states', async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  for (let first = 0; first < MODELS; first += EVENTS_AT_ONCE) {
    const response = await fetch(`${program.httpUrl}/observation.v1.ObservationService/ReportBatch`, {
      method: 'POST',
      headers: { 'content-type': 'application/jsonl' },
      body: Array.from({ length: EVENTS_AT_ONCE }, (_, index) => toLine(first + index)).join('\n'),
    });
    assert.deepEqual(await response.json(), { accepted: EVENTS_AT_ONCE, refused: 0, refusals: [] });
  }
  assert.equal(await program.stop(), 0);
  using store = new DatabaseSync(join(program.dataDir, 'trivet.db'), { readOnly: true });
  const count = (table: string) => store.prepare(`SELECT COUNT(*) AS rows FROM ${table}`).get()?.rows;
  assert.equal(count('samples'), MODELS);
  // 256 target models have a live state of their own, the others share one.
  assert.equal(count('live_states'), 257);
});
