import assert from 'node:assert/strict';
import { testInZones } from '../../../test/support/basics/time-zones.ts';
import { parseTime } from './event-limits.ts';

const MOMENT = '2026-03-01T10:28:03.000Z';
const MIDNIGHT = '2026-03-01T00:00:00.000Z';
const times: [text: string, expected: string | undefined][] = [
  [MOMENT, MOMENT],
  ['2026-03-01 10:28:03 UTC', MOMENT],
  ['2026-03-01 11:28:03 +0100', MOMENT],
  ['2026/03/01 11:28:03 +0100', MOMENT],
  ['2026-03-01T11:28:03+01:00', MOMENT],
  ['2026-03-01T05:28:03-05', MOMENT],
  ['2026-03-01T05:28:03 -0500', MOMENT],
  ['2026-03-01 05:28:03-05', MOMENT],
  ['2026-03-01 05:28:03.000123-05', MOMENT],
  ['2026-03-01 18:28:03 +0800 CST', MOMENT],
  ['2026-03-01 07:28:03 -0300 -03', MOMENT],
  ['2026-03-01 18:28:03 UTC+8', MOMENT],
  ['2026-03-01 10:28:03', MOMENT],
  ['2026-03-01T10:28:03', MOMENT],
  ['Sun Mar 1 10:28:03 2026', MOMENT],
  ['Sun Mar  1 10:28:03 UTC 2026', MOMENT],
  ['Sun Mar 1 11:28:03 2026 +0100', MOMENT],
  ['Sun Mar 01 11:28:03 +0100 2026', MOMENT],
  ['Sun Mar 01 2026 11:28:03 GMT+0100 (CET)', MOMENT],
  ['Sun Mar 01 2026 10:28:03 GMT+0000 (Coordinated Universal Time)', MOMENT],
  ['Tue, 03 Mar 2026 10:28:03 GMT', '2026-03-03T10:28:03.000Z'],
  ['Sun, 01 Mar 2026 11:28:03 +0100 (CET)', MOMENT],
  ['Sun, 01 Mar 2026 05:28:03 EST', MOMENT],
  ['Sunday, 01-Mar-26 10:28:03 GMT', MOMENT],
  ['3/1/2026 10:28:03 AM', MOMENT],
  ['3/1/2026, 10:28:03 AM', MOMENT],
  ['3/1/2026 5:28:03 AM -0500', MOMENT],
  ['10:28:03 01-Mar-2026', MOMENT],
  ['2026-03-01', MIDNIGHT],
  ['01-Mar-2026', MIDNIGHT],
  ['03-01-2026', MIDNIGHT],
  ['+10000-01-01T00:00:00', '9999-12-30T23:59:59+00:00'],
  ['yesterday', undefined],
  [`${MOMENT}${' '.repeat(100)}`, undefined],
];
testInZones('parseTime() reads the same times', () => {
  for (const [text, expected] of times) assert.equal(parseTime(text), expected, text);
});
