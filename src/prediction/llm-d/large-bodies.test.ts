/** A body of 10,000 rows leaves the event loop after each group of rows, so that other calls are answered meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachEngine } from '../../../test/support/engines.ts';
import { isFailure } from '../../errors.ts';
import { parseLargeJson } from '../../http/parser-limits.ts';
import { realWorld } from '../../world.ts';
import { MAX_BODY_BYTES } from './body-budget.ts';
import type { Fault } from './faults.ts';
import { MAX_ROWS, ROWS_A_TURN, readPredictionRows, readTrainingRows } from './read-rows.ts';
import { createTrainingIntake } from './training-intake.ts';

const ENTRY = {
  kv_cache_percentage: 0.25,
  input_token_length: 512,
  num_request_waiting: 1,
  num_request_running: 7,
  num_tokens_generated: 1,
  prefix_cache_score: 0.5,
  pod_type: 'prefill',
  actual_ttft_ms: 120,
  actual_tpot_ms: 7,
  timestamp: '2026-08-22T10:00:00.123456789+02:00',
  note: 'x'.repeat(300),
};
const encode = (body: unknown) => Buffer.from(JSON.stringify(body));
const repeat = (row: object) => Array.from({ length: MAX_ROWS }, () => row);
const GROUPS = Math.ceil(MAX_ROWS / ROWS_A_TURN);
/** The text between two pauses of the check of nesting. */
const CHARACTERS_A_PART = 131_072;

/** The pauses of the check of nesting, and those between groups of rows. */
function countPauses(body: Uint8Array): number {
  return Math.floor(body.length / CHARACTERS_A_PART) - 1 + GROUPS - 1;
}

/** Counts the turns of the event loop; another call could be answered in each. */
function countTurns() {
  let count = 0;
  let next = setImmediate(turn);
  function turn(): void {
    count += 1;
    next = setImmediate(turn);
  }
  return { read: () => count, [Symbol.dispose]: () => clearImmediate(next) };
}

const readers: [name: string, read: typeof readPredictionRows | typeof readTrainingRows, list: string][] = [
  ['readPredictionRows', readPredictionRows, 'requests'],
  ['readTrainingRows', readTrainingRows, 'entries'],
];
for (const [name, read, list] of readers)
  test(`${name}() pauses after every ${ROWS_A_TURN} rows, and while nesting is checked`, async () => {
    const body = encode({ [list]: repeat(ENTRY) });
    assert.ok(body.length > 5_000_000 && body.length <= MAX_BODY_BYTES, `${body.length} bytes`);
    using turns = countTurns();
    assert.equal((await read(body)).length, MAX_ROWS);
    assert.ok(turns.read() >= countPauses(body), `${turns.read()} turns, not ${countPauses(body)}`);
  });

test('readTrainingRows() pauses over rows that are wrong, and names faults of the first and the last group', async () => {
  const rows: object[] = repeat(ENTRY);
  for (const index of [3, MAX_ROWS - 1]) rows[index] = { ...ENTRY, kv_cache_percentage: 2, pod_type: 5 };
  const body = encode({ entries: rows });
  using turns = countTurns();
  await assert.rejects(readTrainingRows(body), (error) => {
    const faults = isFailure(error) ? (error.details.faults as readonly Fault[]) : [];
    assert.deepEqual(
      faults.map(({ loc }) => loc.slice(2)),
      [3, MAX_ROWS - 1].flatMap((row) => ['kv_cache_percentage', 'pod_type'].map((field) => [row, field])),
    );
    return true;
  });
  assert.ok(turns.read() >= countPauses(body), `${turns.read()} turns`);
});

test('parseLargeJson() refuses deep nesting at the end of a large text, strings aside', async () => {
  const filling = JSON.stringify('[{"\\'.repeat(100_000));
  const nest = (depth: number) => `[${filling},${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}]`;
  assert.deepEqual(await parseLargeJson(nest(64)), JSON.parse(nest(64)));
  await assert.rejects(parseLargeJson(nest(65)), /nested at most 64 levels/);
  assert.equal(await parseLargeJson(nest(64).slice(1)), undefined);
});

forEachEngine('a batch of 10,000 training rows becomes observations with a pause after each group', async (store) => {
  const rows = await readTrainingRows(encode({ entries: repeat(ENTRY) }));
  using turns = countTurns();
  let turnsBeforeIds = 0;
  let learned = 0;
  const takeTrainingRows = createTrainingIntake({
    store: {
      ...store,
      makeIds: async (count) => {
        turnsBeforeIds = turns.read();
        return await store.makeIds(count);
      },
    },
    world: realWorld,
    sink: {
      async learn(observations) {
        learned += observations.length;
      },
    },
    measuredTimes: { note: () => {} },
  });
  await takeTrainingRows('m', rows);
  assert.equal(learned, MAX_ROWS);
  assert.ok(turnsBeforeIds >= GROUPS - 1, `${turnsBeforeIds} turns`);
});
