import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseTexts } from '../texts/texts.ts';
import { renderColumns, renderLines } from './time-chart.ts';

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

const HOUR_MS = 3_600_000;
const NOON = Date.UTC(2026, 10, 28, 12);

async function drawColumns(timeZone: string): Promise<string> {
  const texts = chooseTexts({ language: 'en', timeZone });
  return await renderColumns(texts, {
    title: 'Deliveries an hour',
    summary: '',
    moments: [NOON, NOON + HOUR_MS, NOON + 2 * HOUR_MS],
    series: [
      { kind: 'up', label: 'succeeded', values: [3, 0, 1] },
      { kind: 'down', label: 'failed', values: [1200, 0, 0] },
    ],
  });
}

test('renderColumns() says the counts of a column under the pointer, and all of them in a table', async () => {
  const chart = await drawColumns('Asia/Shanghai');
  assert.deepEqual(
    [...chart.matchAll(/<g><title>([^<]*)<\/title>/g)].map(([, title]) => title),
    ['20:00 GMT+8: succeeded 3, failed 1,200', '22:00 GMT+8: succeeded 1, failed 0'],
  );
  const [, table = ''] = /<details><summary>Table: Deliveries an hour<\/summary>([\s\S]*)<\/details>/.exec(chart) ?? [];
  const cells = [...table.matchAll(/<t[hd](?: [^>]*)?>([^<]*)</g)].map(([, text]) => text);
  assert.deepEqual(cells, ['Time (GMT+8)', 'succeeded', 'failed', '22:00', '1', '0', '20:00', '3', '1,200']);
});

test('the times below a chart have their zone', async () => {
  const zoneOf = (chart: string) => /<div class="zone[^>]*>([^<]*)<\/div><div class="clocks/.exec(chart)?.[1];
  assert.equal(zoneOf(await drawColumns('UTC')), 'UTC');
  assert.equal(zoneOf(await drawColumns('Asia/Shanghai')), 'GMT+8');
});
