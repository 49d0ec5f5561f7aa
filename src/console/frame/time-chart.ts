/** Renders charts over time as SVG, with axes and labels as text. The label of a chart also describes it in words. */

import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import { renderTable } from './table.ts';

const WIDTH = 600;
const HEIGHT = 120;
const CLOCKS = 5;

export interface Series {
  /** Its class in the style sheet. */
  readonly kind: string;
  readonly label: string;
  /** One value for each moment; null leaves a gap. */
  readonly values: readonly (number | null)[];
}

export interface TimeChart {
  readonly title: string;
  /** Describes the chart in words. */
  readonly summary: string;
  /** The times at which columns begin, oldest first. */
  readonly moments: readonly number[];
  readonly series: readonly Series[];
  readonly unit?: string;
  /** The highest value of the axis; chosen from the values by default. */
  readonly top?: number;
  /** Formats the times below the chart; as the time of day by default. */
  readonly formatMoment?: (ms: number) => string;
  /** Events, drawn as vertical lines. */
  readonly marks?: readonly Mark[];
}

export interface Mark {
  /** Its class in the style sheet. */
  readonly kind: string;
  /** The name of marks of this kind in the legend. */
  readonly label: string;
  readonly atMs: number;
  /** The tooltip, which says what happened. */
  readonly title: string;
}

/** Renders stacked columns of counts, the first series at the bottom. A column has a tooltip with its counts, and a table has all. */
export function renderColumns(texts: ConsoleTexts, chart: TimeChart): Html {
  const totals = chart.moments.map((_, at) => chart.series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const top = countTop(Math.max(0, ...totals));
  const step = WIDTH / Math.max(1, chart.moments.length);
  const columns = chart.moments.map((_, at) => {
    if (totals[at] === 0) return '';
    let below = 0;
    const parts = chart.series.map(({ kind, values }) => {
      const height = ((values[at] ?? 0) / top) * HEIGHT;
      below += height;
      if (height === 0) return '';
      return html`<rect class="${kind}" x="${round(at * step + 0.5)}" y="${round(HEIGHT - below)}" width="${round(step - 1)}" height="${round(height)}"/>`;
    });
    const whole = html`<rect x="${round(at * step)}" width="${round(step)}" height="${HEIGHT}" fill="none" pointer-events="all"/>`;
    return html`<g><title>${describeColumn(texts, chart, at)}</title>${whole}${parts}</g>`;
  });
  return renderChart(texts, chart, { top, content: html`${columns}`, values: renderValues(texts, chart, totals) });
}

function describeColumn(texts: ConsoleTexts, chart: TimeChart, at: number): string {
  const { clock, zone, count } = texts.format;
  const { moments, series, formatMoment = clock } = chart;
  const counts = series.map(({ label, values }) => `${label} ${count(values[at] ?? 0)}`);
  return `${formatMoment(moments[at]!)} ${zone(moments[at]!)}${texts.marks.colon}${counts.join(texts.marks.list)}`;
}

/** Renders a table of the values, newest first, without times that have none. */
function renderValues(texts: ConsoleTexts, chart: TimeChart, totals: readonly number[]): Html | '' {
  const { clock, zone, count } = texts.format;
  const { title, moments, series, formatMoment = clock } = chart;
  const rows = moments
    .map((ms, at) => [formatMoment(ms), ...series.map(({ values }) => count(values[at] ?? 0))])
    .filter((_, at) => totals[at] !== 0)
    .toReversed();
  if (rows.length === 0) return '';
  const columns = [texts.timeIn(zone(moments.at(-1)!)), ...series.map(({ label }) => label)];
  const table = renderTable(texts, { label: title, columns, rows, textColumns: 1 });
  return html`<details><summary>${texts.table(title)}</summary>${table}</details>`;
}

export function renderLines(texts: ConsoleTexts, chart: TimeChart): Html {
  const top =
    chart.top ?? niceTop(Math.max(0, ...chart.series.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const step = WIDTH / Math.max(1, chart.moments.length);
  const lines = chart.series.map(
    ({ kind, values }) =>
      html`<path class="line ${kind}" d="${drawLine(values, { step, top })}"/>${kind === 'baseline' ? '' : html`<path class="line ${kind} dot" d="${drawDots(values, { step, top })}"/>`}`,
  );
  return renderChart(texts, chart, { top, content: html`${lines}` });
}

/** Renders a line from value to value; a value between two gaps is a dash. */
function drawLine(values: readonly (number | null)[], { step, top }: { readonly step: number; readonly top: number }) {
  const parts = values.map((value, at) => {
    if (value === null) return '';
    const y = round(HEIGHT - (value / top) * HEIGHT);
    const isStart = at === 0 || values[at - 1] === null;
    const end = at === values.length - 1 ? `H${WIDTH}` : '';
    return isStart ? `M${round(at * step)} ${y}H${round((at + 1) * step)}` : `L${round((at + 0.5) * step)} ${y}${end}`;
  });
  return parts.join('');
}

/** Dots for the newest value and each value between two gaps: as lines they would be one step long, perhaps a pixel or two. */
function drawDots(values: readonly (number | null)[], { step, top }: { readonly step: number; readonly top: number }) {
  const newest = values.findLastIndex((value) => value !== null);
  const parts = values.map((value, at) => {
    const isAlone = (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null;
    if (value === null || (at !== newest && !isAlone)) return '';
    const x = at === values.length - 1 ? WIDTH : (at + 0.5) * step;
    return `M${round(x)} ${round(HEIGHT - (value / top) * HEIGHT)}h0`;
  });
  return parts.join('');
}

function renderChart(
  texts: ConsoleTexts,
  chart: TimeChart,
  { top, content, values = '' }: { readonly top: number; readonly content: Html; readonly values?: Html | '' },
): Html {
  const { title, summary, moments, unit = '', formatMoment = texts.format.clock } = chart;
  const clocks = Array.from({ length: CLOCKS }, (_, index) =>
    Math.round((index * (moments.length - 1)) / (CLOCKS - 1)),
  ).map((at) => html`<span>${formatMoment(moments[at] ?? 0)}</span>`);
  const heights = [top, top / 2, 0].map((value) => html`<span>${texts.format.number(value)}${unit}</span>`);
  return html`<figure class="chart"><figcaption><strong>${title}</strong> <span class="small soft">${summary}</span></figcaption>
<div class="plot"><div class="heights small soft" aria-hidden="true">${heights}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}: ${summary}"><path class="grid" d="M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}"/>${drawMarks(chart)}${content}<path class="axis" d="M0 ${HEIGHT - 0.5}H${WIDTH}"/></svg>
<div class="zone small soft" aria-hidden="true">${texts.format.zone(moments.at(-1) ?? 0)}</div><div class="clocks small soft" aria-hidden="true">${clocks}</div></div><ul class="legend">${renderLegend(chart)}</ul>${values}</figure>`;
}

function renderLegend({ series, marks = [] }: TimeChart): Html[] {
  const kinds = new Map([...series, ...marks].map(({ kind, label }) => [kind, label]));
  return [...kinds].map(
    ([kind, label]) =>
      html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${kind}" width="10" height="10"/></svg>${label}</li>`,
  );
}

/** Renders the events, without those outside of the time range. */
function drawMarks({ moments, marks = [] }: TimeChart): Html[] {
  const [first = 0, second = first + 1] = moments;
  const length = (second - first) * moments.length;
  return marks
    .filter(({ atMs }) => atMs >= first && atMs <= first + length)
    .map(({ kind, atMs, title }) => {
      const x = round(((atMs - first) / length) * WIDTH);
      return html`<path class="line ${kind}" d="M${x} 0V${HEIGHT}"><title>${title}</title></path>`;
    });
}

/** 1, 2 or 5 times a power of ten, not below the value. */
export function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

/** Rounds up to a value whose half is a whole number too, since an axis of counts has no fractions. */
function countTop(count: number): number {
  const top = niceTop(count);
  return top % 2 === 0 ? top : top * 2;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
