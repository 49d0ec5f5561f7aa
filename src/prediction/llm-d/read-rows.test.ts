import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFailure } from '../../errors.ts';
import type { Fault } from './faults.ts';
import { MAX_ROWS, readPredictionRow, readPredictionRows, readTrainingRows } from './read-rows.ts';
import { toObservation } from './training-intake.ts';

/** As Go's encoding/json writes a PredictionRequest of the router. */
const ROW = {
  kv_cache_percentage: 0.25,
  input_token_length: 512,
  num_request_waiting: 1,
  num_request_running: 7,
  num_tokens_generated: 1,
  prefix_cache_score: 0.5,
  encoder_input_size: 0,
  encoder_matched_size: 0,
  pod_type: 'prefill',
  prefill_tokens_in_flight: 900,
  decode_tokens_in_flight: 11,
};
const ENTRY = { ...ROW, actual_ttft_ms: 120, actual_tpot_ms: 0, timestamp: '2026-08-22T10:00:00.123456789+02:00' };
const NOW_MS = Date.parse('2026-08-22T08:00:01Z');
const BATCH = { nowMs: NOW_MS, aheadMs: 0 };

const encode = (body: unknown) => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));

async function listFaults(read: () => Promise<unknown>): Promise<readonly Fault[]> {
  try {
    await read();
  } catch (error) {
    assert.ok(isFailure(error), String(error));
    assert.equal(error.details.status, 422);
    return error.details.faults as readonly Fault[];
  }
  return [];
}

const describe = ({ loc, msg, type }: Fault) => `${loc.join('.')}: ${msg} (${type})`;
async function askFaults(row: unknown): Promise<readonly string[]> {
  return (await listFaults(() => readPredictionRows(encode({ requests: [row] })))).map(describe);
}

test('readPredictionRows() reads a row of the router and ignores fields that it does not know', async () => {
  const [row] = await readPredictionRows(
    encode({ requests: [{ ...ROW, since: 'tomorrow', constructor: 1 }], more: 1 }),
  );
  assert.deepEqual(row, {
    kvCacheUsage: 0.25,
    inputTokenLength: 512,
    numRequestWaiting: 1,
    numRequestRunning: 7,
    numTokensGenerated: 1,
    prefixCacheScore: 0.5,
    podType: 'prefill',
    prefillTokensInFlight: 900,
    decodeTokensInFlight: 11,
    encoderInputSize: 0,
    encoderMatchedSize: 0,
    endpoint: '',
  });
});

test('readPredictionRow() reads a row of release 1.3, which had six fields, and a server that is named', async () => {
  const { pod_type: _, prefill_tokens_in_flight: _p, decode_tokens_in_flight: _d, ...old } = ROW;
  const row = await readPredictionRow(encode({ ...old, endpoint: '10.0.0.1:8000', pod_type: null }));
  assert.deepEqual([row.podType, row.prefillTokensInFlight, row.endpoint], ['', 0, '10.0.0.1:8000']);
});

const faulty: [row: unknown, faults: readonly string[]][] = [
  [ROW, []],
  [{ ...ROW, input_token_length: '512', prefix_cache_score: '5e-1', num_request_waiting: 3.0 }, []],
  [
    { ...ROW, kv_cache_percentage: 1.01 },
    ['body.requests.0.kv_cache_percentage: Input should be less than or equal to 1 (less_than_equal)'],
  ],
  [
    { ...ROW, num_request_waiting: -1, prefix_cache_score: -0.1 },
    [
      'body.requests.0.num_request_waiting: Input should be greater than or equal to 0 (greater_than_equal)',
      'body.requests.0.prefix_cache_score: Input should be greater than or equal to 0 (greater_than_equal)',
    ],
  ],
  [
    { ...ROW, input_token_length: 1.5, num_request_running: 'many', num_tokens_generated: null },
    [
      'body.requests.0.input_token_length: Input should be a valid integer, got a number with a fractional part (int_from_float)',
      'body.requests.0.num_request_running: Input should be a valid integer, unable to parse string as an integer (int_parsing)',
      'body.requests.0.num_tokens_generated: Input should be a valid integer (int_type)',
    ],
  ],
  [{ ...ROW, input_token_length: 2_147_483_647 }, []],
  [
    { ...ROW, input_token_length: 2_147_483_648, decode_tokens_in_flight: 1.7e308 },
    ['input_token_length', 'decode_tokens_in_flight'].map(
      (name) => `body.requests.0.${name}: Input should be less than or equal to 2147483647 (less_than_equal)`,
    ),
  ],
  [{ ...ROW, input_token_length: undefined }, ['body.requests.0.input_token_length: Field required (missing)']],
  [{ ...ROW, pod_type: 5 }, ['body.requests.0.pod_type: Input should be a valid string (string_type)']],
  [
    { ...ROW, pod_type: 'p'.repeat(257) },
    ['body.requests.0.pod_type: String should have at most 256 bytes (string_too_long)'],
  ],
  [{ ...ROW, endpoint: 'a\0b' }, ['body.requests.0.endpoint: String must not contain the character NUL (string_type)']],
  [7, ['body.requests.0: Input should be a valid dictionary or object to extract fields from (model_attributes_type)']],
];
for (const [row, faults] of faulty)
  test(`readPredictionRows() finds ${faults.length} faults: ${faults[0] ?? 'none'}`, async () =>
    assert.deepEqual(await askFaults(row), faults));

const bodies: [body: unknown, fault: string][] = [
  ['{', 'body: JSON decode error (json_invalid)'],
  ['{"requests":[NaN]}', 'body: JSON decode error (json_invalid)'],
  [[], 'body: Input should be a valid dictionary or object to extract fields from (model_attributes_type)'],
  [{}, 'body.requests: Field required (missing)'],
  [{ requests: {} }, 'body.requests: Input should be a valid list (list_type)'],
  [{ requests: [] }, 'body.requests: List should have at least 1 item after validation, not 0 (too_short)'],
  [
    { requests: Array.from({ length: MAX_ROWS + 1 }, () => 0) },
    'body.requests: List should have at most 10000 items after validation, not 10001 (too_long)',
  ],
  [
    '{"requests":[{"kv_cache_percentage":1e999}]}',
    'body.requests.0.kv_cache_percentage: Input should be a finite number (finite_number)',
  ],
];
for (const [body, fault] of bodies)
  test(`readPredictionRows() refuses a body: ${fault}`, async () =>
    assert.equal((await listFaults(() => readPredictionRows(encode(body)))).map(describe)[0], fault));

test('readPredictionRows() names every row that is wrong, up to a thousand faults and the number of the others', async () => {
  const rows = [ROW, { ...ROW, pod_type: 1 }, ROW, { ...ROW, pod_type: 1 }];
  const faults = await listFaults(() => readPredictionRows(encode({ requests: rows })));
  assert.deepEqual(
    faults.map(({ loc }) => loc[2]),
    [1, 3],
  );
  const many = await listFaults(() =>
    readPredictionRows(encode({ requests: Array.from({ length: MAX_ROWS }, () => ({})) })),
  );
  assert.equal(many.length, 1001);
  assert.equal(many.at(-1)?.msg, '59000 more faults are not listed');
});

test('readTrainingRows() takes no entries, too, and times as Go writes them', async () => {
  assert.deepEqual(await readTrainingRows(encode({ entries: [] })), []);
  const [entry] = await readTrainingRows(encode({ entries: [ENTRY] }));
  assert.equal(entry?.timestamp, Date.parse('2026-08-22T08:00:00.123Z'));
  const faults = await listFaults(() => readTrainingRows(encode({ entries: [{ ...ENTRY, timestamp: 'noon' }] })));
  assert.deepEqual(faults.map(describe), [
    'body.entries.0.timestamp: Input should be a valid datetime (datetime_parsing)',
  ]);
});

const observed: [title: string, changes: object, expected: readonly (readonly (number | undefined)[])[]][] = [
  ['a TTFT row', {}, [[120, undefined, Date.parse('2026-08-22T08:00:00.123Z')]]],
  [
    'a TPOT row',
    { actual_ttft_ms: 0, actual_tpot_ms: 9.5 },
    [[undefined, 9.5, Date.parse('2026-08-22T08:00:00.123Z')]],
  ],
  ['a row without a time', { actual_ttft_ms: 0 }, []],
  ['a row without a timestamp', { timestamp: undefined }, [[120, undefined, NOW_MS]]],
  ["Go's time zero", { timestamp: '0001-01-01T00:00:00Z' }, [[120, undefined, NOW_MS]]],
  [
    'a clock that is minutes ahead',
    { timestamp: new Date(NOW_MS + 300_000).toISOString() },
    [[120, undefined, NOW_MS]],
  ],
  ['a clock that is days ahead', { timestamp: '2026-09-22T08:00:00Z' }, [[120, undefined, NOW_MS]]],
  [
    'a TPOT that no server reaches',
    { actual_tpot_ms: 0.0001 },
    [[120, undefined, Date.parse('2026-08-22T08:00:00.123Z')]],
  ],
  ['a time of more than a day', { actual_ttft_ms: 1e12 }, []],
];
for (const [title, changes, expected] of observed)
  test(`toObservation() of ${title} has ${expected.length === 0 ? 'nothing' : 'the times that were observed'}`, async () => {
    const [row] = await readTrainingRows(encode({ entries: [{ ...ENTRY, ...changes }] }));
    const times = toObservation('m', row!, BATCH).map(({ ttftMs, tpotMs, atMs }) => [ttftMs, tpotMs, atMs]);
    assert.deepEqual(times, expected);
  });

test('toObservation() keeps the load: tokens of both phases together, the phase, the server', async () => {
  const [row] = await readTrainingRows(encode({ entries: [{ ...ENTRY, endpoint: 'pod-1' }] }));
  const [observation] = toObservation('m', row!, BATCH);
  const { inflightTokens, podType, serverIp, kvCacheUsage, prefixCacheScore } = observation!.input;
  assert.deepEqual(
    [inflightTokens, podType, serverIp, kvCacheUsage, prefixCacheScore],
    [911, 'prefill', 'pod-1', 0.25, 0.5],
  );
});

test('toObservation() keeps the tokens of both phases in the range of a count', async () => {
  const most = { prefill_tokens_in_flight: 2_147_483_647, decode_tokens_in_flight: 2_147_483_647 };
  const [row] = await readTrainingRows(encode({ entries: [{ ...ENTRY, ...most }] }));
  const [observation] = toObservation('m', row!, BATCH);
  assert.equal(observation!.input.inflightTokens, 2_147_483_647);
});
