/** A body of 10,000 rows leaves the event loop after each group of rows, so that other calls are answered meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { isFailure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { CHARACTERS_A_PART } from './cut-lists.ts';
import type { Fault } from './faults.ts';
import { parseLargeBody } from './parse-large-body.ts';
import { MAX_ROWS, ROWS_A_TURN, readPredictionRows, readTrainingRows } from './read-rows.ts';
import { MAX_BODY_BYTES } from './row-body.ts';
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
/** A part ends with a row: it has up to one row more than its characters. */
const LARGEST_PART = CHARACTERS_A_PART + 1000;

/** The pauses between parts of the text, and those between groups of rows. */
function countPauses(body: Uint8Array): number {
  return Math.floor(body.length / LARGEST_PART) - 1 + GROUPS - 1;
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
  test(`${name}() pauses after every ${ROWS_A_TURN} rows, and after every part of the text`, async () => {
    const body = encode({ [list]: repeat(ENTRY) });
    assert.ok(body.length > 5_000_000 && body.length <= MAX_BODY_BYTES, `${body.length} bytes`);
    using turns = countTurns();
    assert.equal((await read(body)).length, MAX_ROWS);
    assert.ok(turns.read() >= countPauses(body), `${turns.read()} turns, not ${countPauses(body)}`);
  });

test('readTrainingRows() pauses before and after it decodes a large body, and after each part', async () => {
  const body = encode({ entries: repeat(ENTRY).slice(0, 150) });
  const rowsAPart = Math.ceil(CHARACTERS_A_PART / encode(ENTRY).length);
  const parts = Math.ceil(150 / rowsAPart);
  using turns = countTurns();
  await readTrainingRows(body);
  assert.equal(turns.read(), parts + 2, `${body.length} bytes`);
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

test('parseLargeBody() refuses deep nesting at the end of a large text, strings aside', async () => {
  const filling = JSON.stringify('[{"\\'.repeat(10_000));
  const nest = (depth: number) =>
    `{"rows":[${`${filling},`.repeat(20)}${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}]}`;
  assert.deepEqual(await parseLargeBody(nest(64), 100), JSON.parse(nest(64)));
  await assert.rejects(parseLargeBody(nest(65), 100), /nested at most 64 levels/);
  assert.equal(await parseLargeBody(nest(64).slice(0, -1), 100), undefined);
});

const filler = JSON.stringify({ a: 'x'.repeat(2000) });
const fill = (items: number) => Array.from({ length: items }, () => filler).join(' , ');
const bodies: [title: string, text: string][] = [
  [
    'a list of many parts, and members around it',
    `{"n":[1,2],"rows":[${fill(50)}],"s":"]}","e":[ ],"d":{"l":[3,[4]]}}`,
  ],
  ['a member that comes twice', `{"rows":[${fill(20)}],"rows":[1,${fill(9)}]}`],
  ['a member named __proto__', `{"__proto__":[${fill(20)}]}`],
  ['numbers, strings with brackets, and null', `{"rows":[${'1e3,"]},{",null,'.repeat(5000)}[]]}`],
  ['a comma after the last item', `{"rows":[${fill(20)},]}`],
  ['a comma before the first item', `{"rows":[,${fill(20)}]}`],
  ['two commas', `{"rows":[${fill(20)},,${fill(20)}]}`],
  ['spaces between two commas of two parts', `{"rows":[${fill(20)},${' '.repeat(40_000)},1]}`],
  ['a list that does not end', `{"rows":[${fill(20)}`],
  ['a string that does not end', `{"rows":[${fill(20)},"a]}`],
  ['a list that ends as an object', `{"rows":[${fill(20)}}}`],
  ['an item that ends as a list', `{"rows":[${fill(20)},{]]}`],
  ['text behind the body', `{"rows":[${fill(20)}]} 1`],
  ['a list as the body', `[${fill(20)}]`],
];
for (const [title, text] of bodies)
  test(`parseLargeBody() reads ${title} as JSON.parse() does`, async () => {
    let expected: unknown;
    try {
      expected = JSON.parse(text);
    } catch {}
    assert.deepEqual(await parseLargeBody(text, 100_000), expected);
  });

test('parseLargeBody() counts items beyond the most, and keeps none of them', async () => {
  const body = (await parseLargeBody(`{"rows":[${'{},'.repeat(50_000)}{}]}`, 100)) as { readonly rows: unknown[] };
  assert.equal(body.rows.length, 50_001);
  assert.deepEqual([body.rows[100], body.rows[101]], [{}, undefined]);
});

const MANY_KEYS = Array.from({ length: 6000 }, (_, i) => `"key ${i}":1`).join();
const tooLarge: [title: string, text: string, message: RegExp][] = [
  ['one item', `{"entries":[1,{${MANY_KEYS}}]}`, /item 2 of a list must have at most 65536 characters, got 7/],
  [
    'what is in no list',
    `{${MANY_KEYS},"entries":[1]}`,
    /what is in no list must have at most 65536 characters, got 7/,
  ],
  ['a body without lists', `{"entries":{${MANY_KEYS}}}`, /what is in no list must have at most 65536 characters/],
];
for (const [title, text, message] of tooLarge)
  test(`readTrainingRows() refuses ${title} that is too large to be parsed at once`, async () => {
    await assert.rejects(readTrainingRows(Buffer.from(text)), message);
  });

forEachEngine(
  'a batch of 10,000 training rows becomes observations, and goes to the store, with a pause after each group',
  async (store) => {
    const rows = await readTrainingRows(encode({ entries: repeat(ENTRY) }));
    using turns = countTurns();
    let turnsBeforeIds = 0;
    let turnsBeforeCall = 0;
    let learned = 0;
    const takeTrainingRows = createTrainingIntake({
      store: {
        ...store,
        makeIds: async (count) => {
          turnsBeforeIds = turns.read();
          return await store.makeIds(count);
        },
        call: async (procedure, input) => {
          turnsBeforeCall = turns.read();
          return await store.call(procedure, input);
        },
      },
      world: realWorld,
      sink: {
        async learn(observations) {
          learned += observations.length;
        },
      },
      measuredTimes: { record: () => {} },
    });
    await takeTrainingRows('m', rows);
    assert.equal(learned, MAX_ROWS);
    assert.ok(turnsBeforeIds >= GROUPS - 1, `${turnsBeforeIds} turns`);
    const encoding = turnsBeforeCall - turnsBeforeIds;
    assert.ok(encoding >= GROUPS - 1, `${encoding} turns while the batch is made ready for the store`);
  },
);
