import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTime } from './event-limits.ts';

const MOMENT = '2026-03-01T10:28:03.000Z';
const times: [text: string, expected: string | undefined][] = [
  [MOMENT, MOMENT],
  ['2026-03-01 10:28:03 UTC', MOMENT],
  ['2026-03-01 11:28:03 +0100', MOMENT],
  ['2026-03-01T11:28:03+01:00', MOMENT],
  ['2026-03-01 10:28:03', MOMENT],
  ['2026-03-01T10:28:03', MOMENT],
  ['Sun Mar 1 10:28:03 2026', MOMENT],
  ['Tue, 03 Mar 2026 10:28:03 GMT', '2026-03-03T10:28:03.000Z'],
  ['2026-03-01', '2026-03-01T00:00:00.000Z'],
  ['+10000-01-01T00:00:00', '9999-12-30T23:59:59+00:00'],
  ['yesterday', undefined],
];
const before = process.env.TZ;
for (const zone of ['UTC', 'America/New_York'])
  test(`parseTime() reads the same times where the zone of the machine is ${zone}`, () => {
    process.env.TZ = zone;
    try {
      for (const [text, expected] of times) assert.equal(parseTime(text), expected, text);
    } finally {
      if (before === undefined) delete process.env.TZ;
      else process.env.TZ = before;
    }
  });
