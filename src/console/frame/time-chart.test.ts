import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseTexts } from '../texts/texts.ts';
import { renderLines } from './time-chart.ts';

async function drawDots(values: readonly (number | null)[]): Promise<string> {
  const texts = chooseTexts({ language: 'en', timeZone: 'UTC' });
  const moments = values.map((_, at) => at * 300_000);
  const series = [{ kind: 'up', label: 'MAPE', values }];
  const chart = await renderLines(texts, { title: 'Error', summary: '', moments, series, top: 10 });
  return /class="line up dot" d="([^"]*)"/.exec(chart)?.[1] ?? 'none';
}

const dots: [title: string, values: readonly (number | null)[], expected: string][] = [
  ['the newest value at the right edge', [1, 2, 5], 'M600 60h0'],
  ['a value between two gaps', [null, 5, null, 0, 0, 5], 'M150 60h0M600 60h0'],
  ['the newest value before a gap', [0, 5, null, null], 'M225 60h0'],
  ['nothing without values', [null, null], ''],
];
for (const [title, values, expected] of dots)
  test(`renderLines() marks ${title} with a dot, which is seen where a step is a pixel wide`, async () =>
    assert.equal(await drawDots(values), expected));
