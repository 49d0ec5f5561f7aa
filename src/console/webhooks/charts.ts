/**
 * Renders small charts of deliveries: attempts of a day, and how long responses took. A text beside each chart, or its label,
 * describes it in words.
 */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import type { HourView, Timings } from './hook-views.ts';

const BAR_WIDTH = 10;
const HALF = 30;

/** Renders a column for each hour: successes above the line, failures below it, and waiting deliveries as an outline on top. */
export function renderDay(texts: ConsoleTexts, hours: readonly HourView[]): Html {
  const { succeeded, failed, waiting } = sumHours(hours);
  const highest = Math.max(1, ...hours.map((hour) => Math.max(hour.succeeded + hour.waiting, hour.failed)));
  const scale = (count: number) => (count === 0 ? 0 : Math.max(1.5, (count / highest) * (HALF - 2)));
  const bars = hours.map((hour, index) => {
    const x = index * BAR_WIDTH + 1;
    const [up, open, down] = [scale(hour.succeeded), scale(hour.waiting), scale(hour.failed)];
    return html`${renderRect('up', x, HALF - up, up)}${renderRect('open', x, HALF - up - open, open)}${renderRect('down', x, HALF, down)}`;
  });
  const width = hours.length * BAR_WIDTH;
  return html`<svg class="day" viewBox="0 0 ${width} ${2 * HALF}" preserveAspectRatio="none" role="img" aria-label="${texts.hooks.lastDay}: ${texts.hooks.chartSummary(succeeded, failed, waiting)}">${bars}<path class="axis" d="M0 ${HALF}H${width}"/></svg>`;
}

function renderRect(kind: string, x: number, y: number, height: number): Html | '' {
  if (height === 0) return '';
  return html`<rect class="${kind}" x="${x}" y="${round(y)}" width="${BAR_WIDTH - 2}" height="${round(height)}"/>`;
}

export function sumHours(hours: readonly HourView[]): Omit<HourView, 'startMs'> {
  const sum = (count: (hour: HourView) => number) => hours.reduce((total, hour) => total + count(hour), 0);
  return { succeeded: sum((h) => h.succeeded), failed: sum((h) => h.failed), waiting: sum((h) => h.waiting) };
}

interface Phase {
  readonly name: keyof ConsoleTexts['deliveries']['phases'];
  readonly ms: number;
}

/** Renders the timeline of an attempt as a bar and as numbers. */
export function renderTimings(texts: ConsoleTexts, timings: Timings): Html {
  const phases = listPhases(timings);
  const width = 600;
  const total = Math.max(timings.total, 0.001);
  let x = 0;
  const bars = phases.map(({ name, ms }) => {
    const share = Math.min(width - x, (ms / total) * width);
    const bar = html`<rect class="phase-${name}" x="${round(x)}" y="0" width="${round(share)}" height="10"/>`;
    x += share;
    return bar;
  });
  const legend = [...phases, { name: 'total' as const, ms: timings.total }].map(
    ({ name, ms }) =>
      html`<li>${name === 'total' ? '' : html`<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="phase-${name}" width="10" height="10"/></svg>`}${texts.deliveries.phases[name]} ${texts.format.milliseconds(ms)}</li>`,
  );
  return html`<svg class="timings" viewBox="0 0 ${width} 10" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="${width}" height="10"/>${bars}</svg><ul class="legend">${legend}</ul>`;
}

function listPhases({ dns, connect, tls, firstByte, total }: Timings): Phase[] {
  const before = (dns ?? 0) + (connect ?? 0) + (tls ?? 0);
  const wait = firstByte === null ? total - before : firstByte - before;
  const phases: (readonly [Phase['name'], number | null])[] = [
    ['dns', dns],
    ['connect', connect],
    ['tls', tls],
    ['wait', Math.max(0, wait)],
    ['read', firstByte === null ? null : Math.max(0, total - firstByte)],
  ];
  return phases.flatMap(([name, ms]) => (ms === null ? [] : [{ name, ms }]));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
