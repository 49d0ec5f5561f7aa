import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError } from 'commander';
import { durationIn, parseEnd, parsePastTime, parseTime, readDuration, readTime } from './time-option.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const durations: [text: string, ms: number | undefined][] = [
  ['500ms', 500],
  ['45m', 45 * 60_000],
  ['1h', HOUR_MS],
  ['1h30m', 1.5 * HOUR_MS],
  ['1.5h', 1.5 * HOUR_MS],
  ['90d', 90 * DAY_MS],
  ['2w', 14 * DAY_MS],
  ['0.5ms', 0.5],
  ['', undefined],
  ['90', undefined],
  ['1 h', undefined],
  ['-1h', undefined],
  ['1y', undefined],
  ['1M', undefined],
  ['h', undefined],
  ['1h,', undefined],
  ['999999999w', undefined],
];
for (const [text, ms] of durations)
  test(`readDuration() takes "${text}" for ${ms} ms`, () => assert.equal(readDuration(text), ms));

const times: [text: string, iso: string | undefined][] = [
  ['2026-03-01', '2026-03-01T00:00:00.000Z'],
  ['2026-03-01T10:00Z', '2026-03-01T10:00:00.000Z'],
  ['2026-03-01T10:00:00.5+08:00', '2026-03-01T02:00:00.500Z'],
  ['2026-03-01 10:00:00z', '2026-03-01T10:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2026-02-30', undefined],
  ['2026-13-01', undefined],
  ['2026-03-01T25:00Z', undefined],
  ['2026-03-01T10:00:00', undefined],
  ['2026-03', undefined],
  ['12', undefined],
  ['1 March 2026', undefined],
  ['yesterday', undefined],
];
for (const [text, iso] of times)
  test(`readTime() takes "${text}" for ${iso}`, () => {
    const timeMs = readTime(text);
    assert.equal(timeMs === undefined ? undefined : new Date(timeMs).toISOString(), iso);
  });

test('parsePastTime() counts a duration back from the clock of who answers, and parseEnd() forward', async () => {
  let reads = 0;
  const clock = {
    readTimeMs: () => {
      reads += 1;
      return Promise.resolve(Date.UTC(2026, 2, 2));
    },
  };
  assert.equal(await parsePastTime('1h')(clock), '2026-03-01T23:00:00.000Z');
  assert.equal(parseEnd('90d')(1000), 1000 + 90 * DAY_MS);
  assert.equal(await parsePastTime('99999d')(clock), '1970-01-01T00:00:00.000Z');
  assert.equal(await parsePastTime('2026-03-01')(clock), '2026-03-01T00:00:00.000Z');
  assert.equal(reads, 2, 'a time that is given needs no clock');
  assert.equal(parseEnd('2999-01-01')(1000), Date.UTC(2999, 0, 1));
  assert.equal(parseEnd('never')(1000), Number.POSITIVE_INFINITY);
  assert.equal(parseTime('2026-03-01'), Date.UTC(2026, 2, 1));
});

test('durationIn() takes durations, and a number alone in the unit of the option', () => {
  const parse = durationIn({ bareUnit: 's', minimum: 0.1, maximum: 3600 });
  assert.deepEqual(['600', '0.5', '1e3', '10m', '500ms'].map(parse), [600, 0.5, 1000, 600, 0.5]);
  assert.deepEqual(['.5', '5.', '+5', '5e-1', '1.5E+1'].map(parse), [0.5, 5, 5, 0.5, 15]);
  for (const text of ['0', '2h', '-1', '.', '1e', 'e1', '+', 'NaN', 'Infinity', '', '0x10', 'soon'])
    assert.throws(() => parse(text), {
      message:
        'it must be a number of s, or a duration such as 45m, 12h or 90d (units: ms, s, m, h, d, w); 0.1 to 3600 s.',
    });
});

const RULE = /^it must be .*a duration such as 45m, 12h or 90d \(units: ms, s, m, h, d, w\)/;
const ISO_RULE = /an ISO 8601 time with Z or an offset \(2026-03-01T10:00:00Z\) or a date in UTC \(2026-03-01\)/;

test('options that take times refuse alike, with all that is allowed', () => {
  for (const parse of [parsePastTime, parseEnd])
    for (const text of ['soon', '', '1y', '2026-03-01T10:00'])
      assert.throws(
        () => parse(text),
        (error) => error instanceof InvalidArgumentError && RULE.test(error.message) && ISO_RULE.test(error.message),
      );
  assert.throws(() => parseEnd('0h'), /it must be/);
  assert.throws(() => parseTime('1h'), ISO_RULE);
});
