import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findFlaws, findReasonToSkipPages, launchBrowser } from '../../../test/support/browser.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import type { Answers } from './accuracy.ts';
import { renderReport } from './report.ts';

const IDLE = {
  podType: '',
  ...fillMetrics(() => 0),
  inputTokenLength: 100,
};

/** Rows of these servers in turn; every prediction is a tenth too long at the first, a half at the others. */
function evaluate(servers: readonly string[]) {
  const table = createObservationTable();
  const answers: Answers = { ttft: [], tpot: [] };
  for (let row = 0; row < 120; row++) {
    const server = row % servers.length;
    const input = { ...IDLE, serverIp: servers[server]!, numRequestRunning: row % 17 };
    appendObservation(table, { targetModel: 'm', input, atMs: undefined, ttftMs: 100 + row, tpotMs: undefined });
    if (row < 60) continue;
    const observedMs = 100 + row;
    const predictedMs = observedMs * (server === 0 ? 1.1 : 1.5);
    answers.ttft.push({ row, observedMs, predictedMs, p90Ms: predictedMs * 2 });
  }
  return renderReport({ protocol: 'time', inputs: ['a<b>.jsonl'], table, answers });
}

test('a report has the errors of each server, where there are several', () => {
  const page = evaluate(['10.0.0.10', '10.0.0.9', '<i>']);
  const [, servers] = page.split('<h2>By server</h2>');
  const cells = servers!.match(/<th scope="row">.*?<\/tr>/g)!.map((row) =>
    row
      .replace(/<[^>]*>/g, ' ')
      .trim()
      .split(/\s+/),
  );
  assert.deepEqual(
    cells.map(([name, target, rows, mape]) => [name, target, rows, mape]),
    [
      ['&#60;i&#62;', 'TTFT', '20', '50.0'],
      ['10.0.0.9', 'TTFT', '20', '50.0'],
      ['10.0.0.10', 'TTFT', '20', '10.0'],
    ],
  );
  assert.doesNotMatch(page, /<i>|<b>|By pod type|By run/);
  assert.doesNotMatch(evaluate(['10.0.0.1']), /By server/);
});

test('of very many servers, the busiest are named', () => {
  const page = evaluate(Array.from({ length: 50 }, (_, i) => `server-${i}`));
  assert.match(page, /The 40 with the most rows, of 50\./);
  assert.equal(page.match(/<th scope="row">server-/g)?.length, 40);
});

test('errors over time begin where rows are judged', () => {
  const [, plot] = evaluate(['a']).split('aria-label="Error over time');
  const ticks = [...plot!.split('</svg>')[0]!.matchAll(/text-anchor="middle">(\d+)</g)].map(([, tick]) => Number(tick));
  assert.deepEqual(ticks, [60, 80, 100]);
});

test('a report is accessible in every view, and legible on a phone', { skip: findReasonToSkipPages() }, async () => {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.setContent(evaluate(['10.0.0.1', '10.0.0.2']));
    assert.deepEqual(await findFlaws(page), []);
    await page.setViewportSize({ width: 320, height: 800 });
    const heights = (await page.evaluate(HEIGHTS_OF_WORDS)) as number[];
    assert.ok(Math.min(...heights) >= 8, `a word of a plot is ${Math.min(...heights)} px high`);
  } finally {
    await browser.close();
  }
});

/** Those that stand upright are as wide as high. */
const HEIGHTS_OF_WORDS = `[...document.querySelectorAll('svg text')].map((text) => {
  const { width, height } = text.getBoundingClientRect();
  return text.getAttribute('transform') === null ? height : width;
})`;
