import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage, messageType, PredictRequest } from '../../../test/support/grpc/proto-messages.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { MAX_INPUTS } from '../api/predict-call.ts';
import { PredictRequestDecoder } from '../api/predict-codec-request.ts';
import { readJsonRequest } from '../api/predict-json.ts';
import { decodeEvent } from '../observations/event-codec.ts';
import { checkDraft } from '../observations/event-draft.ts';
import { readJsonEvent } from '../observations/event-json.ts';
import { insertSampleStatement, listSamples } from '../observations/sample-store.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from './columns.ts';
import { fillMetrics, findBrokenBound, INPUT_FIELDS, MAX_COUNT, METRICS, type MetricColumn } from './input-fields.ts';

/** A number of its own for each metric, a whole one where the field has none else. */
const NUMBERS = fillMetrics(({ number, kind }) => (kind === 'int32' ? 1000 + number : number / 16));
const INPUT = { podType: 'decode', ...NUMBERS, serverIp: '10.0.0.1' };
const INPUT_AS_IN_THE_FILE = {
  pod_type: 'decode',
  ...Object.fromEntries(METRICS.map(({ name, column }) => [name, NUMBERS[column]])),
  server_ip: '10.0.0.1',
};

test('INPUT_FIELDS are the fields of PredictInput, with their numbers and types', () => {
  const fields = messageType('prediction.v1.PredictInput').fieldsArray.map(({ name, id, type }) => ({
    name,
    id,
    type,
  }));
  const described = INPUT_FIELDS.map(({ name, number, kind }) => {
    return { name: name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), id: number, type: kind };
  });
  assert.deepEqual(
    described,
    fields.toSorted((a, b) => a.id - b.id),
  );
});

function readNumbers(columns: PredictColumns): Record<MetricColumn, number> {
  assert.equal(columns.count, 1);
  assert.deepEqual(
    columns.metrics.map((column) => column[0]),
    METRIC_COLUMNS.map((name) => columns[name][0]),
  );
  return fillMetrics(({ column }) => columns[column][0]!);
}

const columns = createPredictColumns(MAX_INPUTS);
const decoder = new PredictRequestDecoder(columns);

const calls: [title: string, read: (input: object) => unknown][] = [
  ['the bytes of a call', (input) => decoder.decode(encodeMessage(PredictRequest, { inputs: [input] }))],
  ['the JSON of a call', (input) => readJsonRequest({ inputs: [input] }, columns)],
];
for (const [title, read] of calls) {
  test(`every field of the table is read from ${title}`, () => {
    read(INPUT);
    assert.deepEqual(readNumbers(columns), NUMBERS);
  });
  test(`each field of the table is read from ${title} into its own column`, () => {
    for (const { column } of METRICS) {
      read({ [column]: NUMBERS[column] });
      assert.deepEqual(readNumbers(columns), { ...fillMetrics(() => 0), [column]: NUMBERS[column] });
    }
  });
}

test('fields of the table are read from JSON under their names in the proto file', () => {
  readJsonRequest({ inputs: [INPUT_AS_IN_THE_FILE] }, columns);
  assert.deepEqual(readNumbers(columns), NUMBERS);
  const draft = readJsonEvent({ dispatched: { requestId: 'r', targetModel: 'm', input: INPUT_AS_IN_THE_FILE } });
  assert.deepEqual(draft.input, INPUT);
});

const dispatched = { dispatched: { requestId: 'r', targetModel: 'm', input: INPUT } };
const reports: [title: string, read: () => ReturnType<typeof decodeEvent>][] = [
  ['the bytes of a report', () => decodeEvent(encodeMessage(messageType('observation.v1.Event'), dispatched))],
  ['the JSON of a report', () => readJsonEvent(dispatched)],
];
for (const [title, read] of reports)
  test(`every field of the table is read from ${title}`, () => assert.deepEqual(read().input, INPUT));

test('a refusal names the field of the table that breaks a bound', () => {
  for (const { name, column, kind } of METRICS) {
    const broken: readonly number[] = [Number.NaN, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const value of broken) {
      const found = findBrokenBound({ ...NUMBERS, [column]: value });
      assert.deepEqual(found, { name, value, bound: 'not negative and finite' });
      const draft = { ...readJsonEvent(dispatched), input: { ...INPUT, [column]: value } };
      assert.throws(() => checkDraft(draft, 0), { message: `input.${name} must be a number from 0 on, got ${value}` });
    }
    const large = findBrokenBound({ ...NUMBERS, [column]: MAX_COUNT + 1 });
    assert.equal(large?.bound, kind === 'int32' ? 'maximum' : undefined);
    assert.equal(findBrokenBound({ ...NUMBERS, [column]: MAX_COUNT }), undefined);
    assert.equal(findBrokenBound({ ...NUMBERS, [column]: 0 }), undefined);
  }
});

forEachEngine('every field of the table is kept in a sample', async (store) => {
  const observation = { targetModel: 'm', input: INPUT, atMs: 5, ttftMs: 6, tpotMs: undefined };
  await store.writeAll([insertSampleStatement({ id: 1, observation })]);
  const [sample] = await listSamples(store, 'm', { limit: 10 });
  assert.deepEqual(sample?.observation.input, INPUT);
});

test('every field of the table has a tag of one byte, which the decoder of calls finds a column by', () => {
  for (const { number } of INPUT_FIELDS) assert.ok(number <= 15);
});
