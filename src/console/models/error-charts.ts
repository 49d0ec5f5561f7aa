/** Renders a heat map of observed against predicted times, and error bars by load. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';

import { listTicks, renderTickLabels, type Tick } from '../frame/log-ticks.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { ErrorsByLoad } from './accuracy-views.ts';
import { type RangeErrors, shareBetween, summarizeErrors } from './error-ranges.ts';

const WIDTH = 600;
const HEIGHT = 300;
/** The width at which ranges without an upper limit are drawn. */
const OPEN_FACTOR = 2;
const FAINTEST = 0.12;

/** A range of logarithms of milliseconds. */
interface Span {
  readonly low: number;
  readonly high: number;
}

export function renderAgainst(texts: ConsoleTexts, target: string, errors: ErrorsByLoad): Html {
  const t = texts.errors;
  const title = t.against(target);
  const { rows, median } = summarizeErrors(errors);
  const summary = t.summary(rows, formatError(texts, median), texts.format.percent(shareBetween(errors, 1 / 1.2, 1.2)));
  const span = findSpan(errors);
  const ticks = listTicks(Math.exp(span.low), Math.exp(span.high));
  const { side, foot } = renderTickLabels(ticks, (ms) => formatTime(texts, ms));
  return html`<figure class="chart"><figcaption><strong>${title}</strong> <span class="small soft">${summary}</span><span class="small soft">${t.axes}</span></figcaption>
<div class="plot">${side}
<svg class="tall" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title}: ${summary}">${drawGrid(ticks)}${drawCells(texts, errors, span)}<path class="line baseline" d="M0 ${HEIGHT}L${WIDTH} 0"/><path class="axis" d="M0 0V${HEIGHT}H${WIDTH}"/></svg>
${foot}</div>
<ul class="legend"><li>${renderKey('cell')}${t.cells}</li><li>${renderKey('baseline')}${t.equal}</li></ul></figure>`;
}

/** Formats a time: in seconds from one second on, else in milliseconds. */
function formatTime({ format }: ConsoleTexts, ms: number): string {
  return ms < 1000 ? `${format.number(ms)} ms` : `${format.number(ms / 1000)} s`;
}

function drawGrid(ticks: readonly Tick[]): Html {
  const lines = ticks.map(
    ({ share }) => `M${round(share * WIDTH)} 0V${HEIGHT}M0 ${round((1 - share) * HEIGHT)}H${WIDTH}`,
  );
  return html`<path class="grid" d="${lines.join('')}"/>`;
}

function renderKey(kind: string): Html {
  return html`<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${kind}" width="10" height="10"/></svg>`;
}

/** Both axes have this scale, so that equal times are on the diagonal. */
function findSpan({ counts, edges }: ErrorsByLoad): Span {
  const ranges = counts.map(({ range }) => range);
  const [low] = boundsOf(edges, Math.min(...ranges));
  const [, high] = boundsOf(edges, Math.max(...ranges));
  return { low: low - Math.LN2, high: high + Math.LN2 };
}

function boundsOf(edges: readonly number[], at: number): readonly [low: number, high: number] {
  const low = edges[at - 1] ?? edges[0]! / OPEN_FACTOR;
  const high = edges[at] ?? edges.at(-1)! * OPEN_FACTOR;
  return [Math.log(low), Math.log(high)];
}

function widthOf(edges: readonly number[], at: number): number {
  const [low, high] = boundsOf(edges, at);
  return high - low;
}

/** Observed = predicted × ratio: on logarithmic scales a cell of both ranges is a parallelogram. */
function drawCells(texts: ConsoleTexts, { counts, edges, ratioEdges }: ErrorsByLoad, { low, high }: Span): Html[] {
  const densities = counts.map(({ ratio, times }) => times / widthOf(ratioEdges, ratio));
  const densest = Math.max(...densities);
  const x = (value: number) => round(((value - low) / (high - low)) * WIDTH);
  const y = (value: number) => round(clamp(1 - (value - low) / (high - low)) * HEIGHT);
  return counts.map(({ range, ratio, times }, at) => {
    const [from, to] = boundsOf(edges, range);
    const [least, largest] = boundsOf(ratioEdges, ratio);
    const corners = [
      [from, least],
      [to, least],
      [to, largest],
      [from, largest],
    ].map(([time, factor]) => `${x(time!)},${y(time! + factor!)}`);
    const shade = FAINTEST + (1 - FAINTEST) * Math.sqrt(densities[at]! / densest);
    return html`<polygon class="cell" fill-opacity="${round(shade)}" points="${corners.join(' ')}"><title>${texts.format.count(times)}</title></polygon>`;
  });
}

const BAR_WIDTH = 100;
const BAR_HEIGHT = 12;

/** Draws a bar from a quarter to four times the prediction; the line in the middle is the prediction. */
export function renderBar({ p10, median, p90 }: RangeErrors): Html {
  const x = (ratio: number) => round(clamp(0.5 + Math.log2(ratio) / 4) * BAR_WIDTH);
  return html`<svg class="ratio" viewBox="0 0 ${BAR_WIDTH} ${BAR_HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="${BAR_WIDTH}" height="${BAR_HEIGHT}"/><rect class="up" x="${x(p10)}" y="3" width="${round(Math.max(0.5, x(p90) - x(p10)))}" height="6"/><path class="line slow" d="M${x(median)} 0V${BAR_HEIGHT}"/><path class="axis" d="M${BAR_WIDTH / 2} 0V${BAR_HEIGHT}"/></svg>`;
}

/** 1.2 is `+20 %`: a fifth longer than predicted. */
export function formatError(texts: ConsoleTexts, ratio: number): string {
  const percent = texts.format.number(Math.abs(ratio - 1) * 100);
  if (percent === '0') return '0 %';
  return `${ratio > 1 ? '+' : '−'}${percent} %`;
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
