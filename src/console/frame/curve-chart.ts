/** Renders a chart of one quantity against another as SVG. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import { niceTop } from './time-chart.ts';

const WIDTH = 600;
const HEIGHT = 160;
const TICKS = [0, 0.5, 1];

export interface CurvePoint {
  readonly x: number;
  readonly y: number;
  /** The point is outside of the observed range; the line to it is dashed. */
  readonly isExtrapolated?: boolean;
}

export interface CurveChart {
  readonly title: string;
  /** Describes the chart in words. */
  readonly summary: string;
  /** Screen readers read this before the title, where several charts have the same title. */
  readonly group?: string;
  /** In rising order of x. */
  readonly points: readonly CurvePoint[];
  /** The unit after each value of an axis. */
  readonly xUnit?: string;
  readonly yUnit: string;
  /** The highest y of the chart, which begins at 0; chosen from the points by default. Higher points are drawn at the edge. */
  readonly top?: number;
  readonly lines?: readonly CurveLine[];
  /** The name of the dashed part of the curve in the legend. */
  readonly extrapolated?: string;
}

/** A straight line through the whole chart. */
export interface CurveLine {
  /** Its class in the style sheet. */
  readonly kind: string;
  readonly label: string;
  readonly at: { readonly x: number } | { readonly y: number };
}

interface Scale {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
}

export function renderCurve(texts: ConsoleTexts, chart: CurveChart): Html {
  const { title, summary, group, points, xUnit = '', yUnit, lines = [] } = chart;
  const { number } = texts.format;
  const [from, to] = [points[0]!.x, points.at(-1)!.x];
  const top = chart.top ?? niceTop(Math.max(...points.map(({ y }) => y)));
  const scale: Scale = {
    x: (value) => round(((value - from) / Math.max(1e-12, to - from)) * WIDTH),
    y: (value) => round((1 - value / top) * HEIGHT),
  };
  const heights = TICKS.toReversed().map((share) => html`<span>${number(share * top)}${yUnit}</span>`);
  const values = TICKS.map((share) => html`<span>${number(from + share * (to - from))}${xUnit}</span>`);
  const name = group === undefined ? title : `${group}, ${title}`;
  return html`<figure class="chart"><figcaption><strong>${title}</strong> <span class="small soft">${summary}</span></figcaption>
<div class="plot"><div class="heights small soft" aria-hidden="true">${heights}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${name}: ${summary}"><path class="grid" d="M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}"/>${drawCurve(points, { top, scale })}${lines.map((line) => drawLine(line, scale))}<path class="axis" d="M0 ${HEIGHT - 0.5}H${WIDTH}"/></svg>
<div class="clocks small soft" aria-hidden="true">${values}</div></div>${renderLegend(chart)}</figure>`;
}

/** Splits the curve: the solid part ends at the last point before the first extrapolated one, and the dashed part begins there. */
function drawCurve(
  points: readonly CurvePoint[],
  range: { readonly top: number; readonly scale: Scale },
): readonly Html[] {
  const first = points.findIndex(({ isExtrapolated }) => isExtrapolated === true);
  const end = first === -1 ? points.length : first;
  const beyond = points.slice(Math.max(0, end - 1));
  return [
    html`<path class="line slow" d="${drawPath(points.slice(0, end), range)}"/>`,
    ...(first === -1 ? [] : [html`<path class="line slow beyond" d="${drawPath(beyond, range)}"/>`]),
  ];
}

function renderLegend({ points, lines = [], extrapolated }: CurveChart): Html | '' {
  const isContinued = extrapolated !== undefined && points.some(({ isExtrapolated }) => isExtrapolated === true);
  if (lines.length === 0 && !isContinued) return '';
  const dashed = html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><path class="line slow beyond key" d="M0 5H10"/></svg>${extrapolated}</li>`;
  return html`<ul class="legend">${lines.map(renderKey)}${isContinued ? dashed : ''}</ul>`;
}

/** A value above the range of the chart is drawn at its edge. */
function drawPath(
  points: readonly CurvePoint[],
  { top, scale }: { readonly top: number; readonly scale: Scale },
): string {
  const parts: string[] = [];
  for (const [i, { x, y }] of points.entries()) {
    const before = points[i - 1];
    if (y <= top) {
      parts.push(`${parts.length === 0 ? 'M' : 'L'}${scale.x(x)} ${scale.y(y)}`);
      continue;
    }
    if (before !== undefined && before.y <= top) {
      const share = (top - before.y) / (y - before.y);
      parts.push(`L${scale.x(before.x + share * (x - before.x))} 0`);
    }
    break;
  }
  return parts.join('');
}

function drawLine({ kind, label, at }: CurveLine, scale: Scale): Html {
  const path = 'x' in at ? `M${scale.x(at.x)} 0V${HEIGHT}` : `M0 ${scale.y(at.y)}H${WIDTH}`;
  return html`<path class="line ${kind}" d="${path}"><title>${label}</title></path>`;
}

function renderKey({ kind, label }: CurveLine): Html {
  return html`<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${kind}" width="10" height="10"/></svg>${label}</li>`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
