/** Chooses round values on a logarithmic scale, and renders their labels. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';

export interface Tick {
  readonly value: number;
  /** The position on the scale, from 0 at its low end to 1 at its high end. */
  readonly share: number;
}

/** The minimum distance between two ticks, as a share of the scale, so that their labels do not overlap. */
const MIN_SHARE = 0.08;
/** If ticks are closer than this, only powers of ten are labelled on a phone. */
const MIN_SHARE_OF_PHONE = 0.18;
/** Ticks within a decade; the last rows skip decades. */
const SERIES = [
  { factors: [1, 2, 5], decades: 1 },
  { factors: [1], decades: 1 },
  { factors: [1], decades: 3 },
];

/** Returns the densest ticks that fit: 1-2-5, powers of ten, or every third power. `low` and `high` are the ends of the scale. */
export function listTicks(low: number, high: number): Tick[] {
  const span = Math.log10(high / low);
  const fitting = SERIES.find(({ factors, decades }) => leastGap(factors, decades) / span >= MIN_SHARE);
  const { factors, decades } = fitting ?? { factors: [1], decades: 3 };
  const ticks: Tick[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1)
    if (power % decades === 0)
      for (const factor of factors) {
        // Negative powers of ten are not exact in binary: 3 × 0.1 is not 0.3.
        const value = power < 0 ? factor / 10 ** -power : factor * 10 ** power;
        if (value >= low && value <= high) ticks.push({ value, share: Math.log10(value / low) / span });
      }
  return ticks;
}

function leastGap(factors: readonly number[], decades: number): number {
  return factors.length === 1 ? decades : Math.log10(2);
}

/** Renders a column of labels left of a plot, and a row below it. They have no viewBox, so that text is not distorted. */
export function renderTickLabels(
  ticks: readonly Tick[],
  format: (value: number) => string,
): { side: Html; foot: Html } {
  const isClose = ticks.some(({ share }, at) => at > 0 && share - ticks[at - 1]!.share < MIN_SHARE_OF_PHONE);
  const isMinor = (value: number) => isClose && !Number.isInteger(Math.log10(value));
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  const side = ticks.map(
    ({ value, share }) =>
      html`<text x="100%" y="${percent(1 - share)}" text-anchor="end" dominant-baseline="central">${format(value)}</text>`,
  );
  const foot = ticks.map(
    ({ value, share }) =>
      html`<text x="${percent(share)}" y="50%" text-anchor="${anchorOf(share)}" dominant-baseline="central"${isMinor(value) ? html` class="minor"` : ''}>${format(value)}</text>`,
  );
  return {
    side: html`<svg class="ticks y-labels" aria-hidden="true">${side}</svg>`,
    foot: html`<div class="x-labels"><svg class="ticks" aria-hidden="true">${foot}</svg></div>`,
  };
}

function anchorOf(share: number): string {
  if (share < 0.05) return 'start';
  return share > 0.95 ? 'end' : 'middle';
}
