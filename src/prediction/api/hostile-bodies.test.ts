/** Bodies made to cost more than they are long: each reader passes them in linear time, whether it refuses them or not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFailure } from '../../errors.ts';
import { parseRecord } from '../formats/parse-record.ts';
import { decodeEvent, splitBatch } from '../observations/event-codec.ts';
import { readJsonEvent } from '../observations/event-json.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { readJsonRequest } from './predict-json.ts';
import { splitLines } from './rpc-body.ts';

const BYTES = 2_097_152;
/** Ten times what the slowest takes; a pass for each byte or line would take minutes. */
const MAX_CPU_SECONDS = 5;

const fill = (pattern: readonly number[]) => new Uint8Array(Buffer.alloc(BYTES, Buffer.from(pattern)));
const count = (length: number) => Array.from({ length }, (_, i) => i);

const readers: readonly [title: string, read: () => unknown][] = [
  ['lines that are empty', () => splitLines(fill([0x0a]))],
  ['lines that are not UTF-8', () => splitLines(fill([0xff, 0x0a]))],
  [
    'an event with many unknown fields',
    () => readJsonEvent({ observation: { input: Object.fromEntries(count(BYTES / 8).map((i) => [`k${i}`, 1])) } }),
  ],
  ['an event with a long name', () => readJsonEvent({ ['_a'.repeat(BYTES / 2)]: {} })],
  ['an event with a long time', () => readJsonEvent({ finished: { at: `2026-01-01T00:00:00.${'1'.repeat(BYTES)}` } })],
  [
    'a Predict of as many pod types and servers as inputs',
    () => {
      const inputs = count(BYTES / 64).map((i) => ({ podType: `p${i}`, serverIp: `s${i}` }));
      return readJsonRequest({ inputs }, createPredictColumns(64));
    },
  ],
  ['a batch of empty events', () => splitBatch(fill([0x0a, 0]), BYTES)],
  ['an event that changes its kind with every field', () => decodeEvent(fill([0x0a, 0, 0x12, 0]))],
  [
    'a row of llm-d with long texts for numbers',
    () => parseRecord({ kv_cache_percentage: '9'.repeat(BYTES), at: ' '.repeat(BYTES) }, undefined, 'm'),
  ],
];

for (const [title, read] of readers)
  test(`${title}: 2 MiB are read or refused in linear time`, () => {
    const before = process.cpuUsage();
    try {
      read();
    } catch (error) {
      assert.ok(isFailure(error), String(error));
    }
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < MAX_CPU_SECONDS * 1e6, `${(user + system) / 1e6} s of a processor`);
  });

test('splitBatch() looks at one event more than are allowed, however many there are', () => {
  assert.equal(splitBatch(fill([0x0a, 0]), 10_000).length, 10_001);
});
