import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { findFlaws, findReasonToSkipPages, launchBrowser } from '../../../test/support/pages/browser.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import type { Answers } from './accuracy.ts';
import { renderReport } from './report.ts';
import { advise } from './report-advice.ts';
import { answerBaselines } from './report-baselines.ts';

const IDLE = {
  podType: '',
  ...fillMetrics(() => 0),
  inputTokenLength: 100,
};

/** Rows of these servers in turn; every prediction is a tenth too long at the first, a half at the others. */
function evaluate(servers: readonly string[], scale = 1, served?: LatencyModel) {
  const table = createObservationTable();
  const answers: Answers = { ttft: [], tpot: [] };
  for (let row = 0; row < 120; row++) {
    const server = row % servers.length;
    const input = { ...IDLE, serverIp: servers[server]!, numRequestRunning: row % 17 };
    appendObservation(table, {
      targetModel: 'm',
      input,
      atMs: undefined,
      ttftMs: scale * (100 + row),
      tpotMs: undefined,
    });
    if (row < 60) continue;
    const observedMs = scale * (100 + row);
    const predictedMs = observedMs * (server === 0 ? 1.1 : 1.5);
    answers.ttft.push({ row, observedMs, predictedMs, p90Ms: predictedMs * 2 });
  }
  return renderReport({ protocol: 'time', inputs: ['a<b>.jsonl'], table, answers, served });
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

test('a median of all rows and the prior stand beside each figure', () => {
  const cells = evaluate(['10.0.0.1']).split('<th scope="row">TTFT</th>')[1]!.split('</tr>')[0]!;
  const figures = [...cells.matchAll(/class="figure">([^<]+)<.*?median <\/em>([^<]+)<.*?prior <\/em>([^<]+)</g)];
  assert.equal(figures.length, 7);
  const [, model, median, prior] = figures[0]!.map(Number);
  assert.equal(model, 10);
  // Observed are 160 to 219, the median of all rows is 160.
  assert.ok(median! > 10 && median! < 27, String(median));
  assert.ok(prior! > 0);
});

test('an error of thousands of percent is a number like the others', () => {
  const page = evaluate(['10.0.0.1'], 0.01);
  assert.match(page, /<em>prior <\/em>\d{1,3},\d{3}</);
  assert.doesNotMatch(page, /\de\+\d/);
});

test('the served version stands beside each figure, and the page names it', () => {
  const cells = evaluate(['10.0.0.1'], 1, { ...createPriorModel(), id: 'm<3>@3' }).split('<th scope="row">TTFT</th>');
  const figures = [...cells[1]!.split('</tr>')[0]!.matchAll(/prior <\/em>([^<]+)<.*?served <\/em>([^<]+)</g)];
  assert.equal(figures.length, 7);
  for (const [, prior, served] of figures) assert.equal(served, prior);
  assert.match(cells[0]!, /for <span class="v">m&#60;3&#62;@3<\/span>, which is served/);
  assert.doesNotMatch(evaluate(['10.0.0.1']), /served <\/em>/);
});

test('an axis has numbers also where all times are within one step of its scale', () => {
  const [, plot] = evaluate(['a'], 0.06).split('aria-label="Predicted against observed');
  assert.ok([...plot!.split('</svg>')[0]!.matchAll(/class="tick"/g)].length >= 4);
});

test('advice follows from the figures', () => {
  const titles = (page: string) => [...page.matchAll(/<li><strong>(.*?)<\/strong>/g)].map(([, title]) => title);
  const found = titles(evaluate(['a', 'b']));
  assert.ok(found.includes('Collect more rows'), found.join());
  assert.ok(found.includes('TTFT: predictions are too long'), found.join());
  assert.ok(!found.includes('Serve this model'));
  assert.deepEqual(adviseOn({ rows: 1200, factor: 1.02, p90Factor: 1.05 }), ['Serve this model']);
  assert.deepEqual(adviseOn({ rows: 1200, factor: 1.02, p90Factor: 1.05, isIdle: true }), [
    'Send the load of the servers',
  ]);
  assert.deepEqual(adviseOn({ rows: 1200, factor: 1.02, p90Factor: 0.9 }), ['TTFT: do not promise the p90 yet']);
  assert.deepEqual(adviseOn({ rows: 1200, factor: 1.02, p90Factor: 9 }), ['TTFT: the p90 is too careful']);
});

interface AdviceCase {
  readonly rows: number;
  /** Predicted divided by observed. */
  readonly factor: number;
  readonly p90Factor: number;
  readonly isIdle?: boolean;
}

/** The titles of the advice on rows of two servers, of which every tenth took 1.1 times as long as predicted. */
function adviseOn({ rows, factor, p90Factor, isIdle = false }: AdviceCase): string[] {
  const table = createObservationTable();
  const answers: Answers = { ttft: [], tpot: [] };
  for (let row = 0; row < rows; row++) {
    const load = isIdle ? 0 : row % 17;
    const input = {
      ...IDLE,
      serverIp: `s${row % 2}`,
      numRequestRunning: load,
      numRequestWaiting: load,
      kvCacheUsage: load / 20,
    };
    const predictedMs = factor * (100 + 40 * (row % 17));
    const observedMs = (predictedMs / factor) * (row % 10 === 0 ? 1.1 : 1);
    appendObservation(table, { targetModel: 'm', input, atMs: row, ttftMs: observedMs, tpotMs: undefined });
    answers.ttft.push({ row, observedMs, predictedMs, p90Ms: predictedMs * p90Factor });
  }
  const evaluation = { table, answers, baselines: answerBaselines(table, answers) };
  return advise({ ...evaluation, protocol: 'time' }).map(({ title }) => title);
}

test('errors over time begin at the first test row', () => {
  const [, plot] = evaluate(['a']).split('aria-label="Error over time');
  const ticks = [...plot!.split('</svg>')[0]!.matchAll(/text-anchor="middle">(\d+)</g)].map(([, tick]) => Number(tick));
  assert.deepEqual(ticks, [60, 80, 100]);
});

describe('in a browser', { skip: findReasonToSkipPages() }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('a report is accessible in every view, and legible on a phone', async () => {
    const page = await browser.newPage();
    await page.setContent(evaluate(['10.0.0.1', '10.0.0.2']));
    assert.deepEqual(await findFlaws(page), []);
    await page.setViewportSize({ width: 320, height: 800 });
    const heights = (await page.evaluate(HEIGHTS_OF_WORDS)) as number[];
    assert.ok(Math.min(...heights) >= 8, `a word of a plot is ${Math.min(...heights)} px high`);
  });

  for (const scale of [0.001, 1, 10_000])
    test(`nothing of a report is cut or overlaps at any width, with times of ${100 * scale} ms`, async () => {
      const page = await browser.newPage();
      await page.setContent(evaluate(['10.0.0.1', `server-${'with-a-long-name-'.repeat(5)}`], scale));
      for (const width of [320, 360, 375, 414, 480, 501, 600, 768, 900, 1000, 1001, 1024, 1280, 1440, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await page.evaluate(FIND_CUT), [], `${width} px`);
      }
    });
});

/** Those that stand upright are as wide as high. */
const HEIGHTS_OF_WORDS = `[...document.querySelectorAll('svg text')].map((text) => {
  const { width, height } = text.getBoundingClientRect();
  return text.getAttribute('transform') === null ? height : width;
})`;

/** What reaches out of the page or of its plot, what has to be scrolled, and ticks that touch each other. */
const FIND_CUT = `(() => {
  const found = [];
  const within = (inner, outer) =>
    inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5 &&
    inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
  const page = { left: 0, top: 0, right: document.documentElement.clientWidth, bottom: Infinity };
  for (const element of document.querySelectorAll('main *')) {
    if (element.closest('.cards thead') && getComputedStyle(element.closest('thead')).position === 'absolute') continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && !within(box, page)) found.push('outside of the page: ' + element.outerHTML.slice(0, 80));
    if (element instanceof HTMLElement && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) found.push('scrolls: ' + element.outerHTML.slice(0, 80));
  }
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect();
    const ticks = [...svg.querySelectorAll('text')];
    for (const text of ticks) if (!within(text.getBoundingClientRect(), frame)) found.push('cut: ' + text.textContent);
    const boxes = ticks.map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [i, [name, a]] of boxes.entries())
      for (const [other, b] of boxes.slice(i + 1))
        if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom) found.push(name + ' overlaps ' + other);
  }
  for (const cell of document.querySelectorAll('.cards td, .cards tbody th')) {
    const row = cell.closest('tr').getBoundingClientRect();
    if (!within(cell.getBoundingClientRect(), row)) found.push('outside of its row: ' + cell.textContent);
  }
  return found;
})()`;
