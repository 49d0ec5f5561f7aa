import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIsoTime } from './iso-time.ts';

const MOMENT = '2026-08-22T08:00:01.250Z';
const times: [text: string, expected: string][] = [
  [MOMENT, MOMENT],
  ['2026-08-22T10:00:01.250999999+02:00', MOMENT],
  ['2026-08-22t08:00:01.25z', MOMENT],
  ['2026-08-22 08:00:01.25', MOMENT],
  ['2026-08-22 08:00:01,250 UTC', MOMENT],
  ['2026-08-22 10:00:01.25+0200', MOMENT],
  ['2026-08-22 03:30:01.25-04:30', MOMENT],
  ['2026-08-22 08:00:01.25+00', MOMENT],
  ['2026-08-22 08:00:01.25 +0000 UTC', MOMENT],
  ['2026-08-22 01:00:01.250999 -0700 PDT', MOMENT],
  ['2026-08-22 05:00:01.25 -0300 -03', MOMENT],
  ['2026-08-22 13:45:01.25 +0545 +0545', MOMENT],
  ['2026-08-22 08:00:01.250123 +0000 UTC m=+0.000123456', MOMENT],
  ['2026-08-22 08:00:01.25 GMT', MOMENT],
  ['2026-08-22T08:00', '2026-08-22T08:00:00.000Z'],
  ['2026-08-22', '2026-08-22T00:00:00.000Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
];
const zone = process.env.TZ;
for (const local of ['UTC', 'America/New_York'])
  test(`readIsoTime() reads the same times where the zone of the machine is ${local}`, () => {
    process.env.TZ = local;
    try {
      for (const [text, expected] of times) assert.equal(new Date(readIsoTime(text)).toJSON(), expected, text);
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });

const junk = [
  '',
  'run 7',
  '03/04/2026',
  '7',
  '2026',
  '2026-02-30',
  '2026-13-01',
  '2026-08-22T25:00:00Z',
  'Aug 22 2026',
];
for (const text of [
  ...junk,
  '2026-08-22T08:00:00 PST',
  '2026-08-22 08:00:00 UTC PST',
  '2026-08-22 08:00:00 +0000 utc.',
  '2026-08-22T08:00:00+25:00',
  '2026-08-22T08Z',
])
  test(`readIsoTime() takes "${text}" for no time`, () => assert.ok(Number.isNaN(readIsoTime(text))));
