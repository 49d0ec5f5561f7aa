/** Renders two versions that predicted the same samples: errors, difference, certainty. */
import { html } from 'hono/html';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import type { VersionComparison } from './model-views.ts';

export function renderComparison(texts: ConsoleTexts, comparison: VersionComparison): Html {
  const t = texts.models;
  if (comparison.rows === 0) return html`<p class="empty">${t.noComparison}</p>`;
  const { id, otherId, rows, fromMs, toMs, learnedByVersion, learnedByOther } = comparison;
  const learned = (
    [
      [id, learnedByVersion],
      [otherId, learnedByOther],
    ] as const
  ).filter(([, count]) => count > 0);
  return html`<div class="stack"><h2>${t.comparison}</h2>
<p class="soft">${t.comparisonLead(rows, learned)} ${fromMs === null || toMs === null ? '' : html`${renderMoment(texts, fromMs)} – ${renderMoment(texts, toMs)}`}</p>
${renderTargets(texts, comparison)}</div>`;
}

/** A column for each target, so that the whole table fits on a phone. */
function renderTargets(texts: ConsoleTexts, { id, otherId, targets }: VersionComparison): Html {
  const t = texts.models;
  const { number, percent } = texts.format;
  const measures: readonly (readonly [name: string, read: (one: TargetComparison) => string])[] = [
    [t.verdict, ({ difference }) => t.verdicts[difference.verdict]],
    [t.rows, ({ rows }) => number(rows)],
    [t.mapeOf(shorten(id)), ({ version }) => number(version.mape)],
    [t.mapeOf(shorten(otherId)), ({ other }) => number(other.mape)],
    [t.difference, ({ difference }) => formatPoints(difference.mean)],
    [t.interval, ({ difference }) => t.between(formatPoints(difference.low), formatPoints(difference.high))],
    [t.coverageOf(shorten(id)), ({ version }) => percent(version.p90Coverage)],
    [t.coverageOf(shorten(otherId)), ({ other }) => percent(other.p90Coverage)],
  ];
  const table = renderTable(texts, {
    label: t.comparison,
    columns: [t.measure, ...targets.map(({ target }) => target.toUpperCase())],
    textColumns: 1,
    rows: measures.map(([name, read]) => [name, ...targets.map(read)]),
  });
  return html`<div class="narrow">${table}</div>`;
}

type TargetComparison = VersionComparison['targets'][number];

/** `@3` of `qwen@3`: both versions are of the model that the page is about. */
function shorten(id: string): string {
  return id.slice(id.lastIndexOf('@'));
}

function formatPoints(points: number): string {
  const shown = Math.abs(points).toFixed(2);
  if (shown === '0.00') return '0';
  return points > 0 ? `+${shown}` : `−${shown}`;
}
