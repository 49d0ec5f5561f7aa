/** Two versions that predicted the same samples: their errors, the difference and how sure it is. */
import { html } from 'hono/html';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';
import { formatNumber } from '../texts/numbers.ts';
import { texts } from '../texts/texts.ts';
import type { VersionComparison } from './model-views.ts';

const t = texts.models;

export function renderComparison(comparison: VersionComparison): Html {
  if (comparison.rows === 0) return html`<p class="empty">${t.noComparison}</p>`;
  const { id, otherId, rows, fromMs, toMs, learnedByVersion, learnedByOther } = comparison;
  const learned = (
    [
      [id, learnedByVersion],
      [otherId, learnedByOther],
    ] as const
  ).filter(([, count]) => count > 0);
  return html`<div class="stack"><h2>${t.comparison}</h2>
<p class="soft">${t.comparisonLead(rows, learned)} ${fromMs === null || toMs === null ? '' : html`${renderMoment(fromMs)} – ${renderMoment(toMs)}`}</p>
${renderTargets(comparison)}</div>`;
}

function renderTargets({ id, otherId, targets }: VersionComparison): Html {
  return renderTable({
    label: t.comparison,
    columns: [
      t.target,
      t.verdict,
      t.rows,
      t.mapeOf(id),
      t.mapeOf(otherId),
      t.difference,
      t.interval,
      t.coverageOf(id),
      t.coverageOf(otherId),
    ],
    textColumns: 2,
    rows: targets.map(({ target, rows, version, other, difference }) => [
      target.toUpperCase(),
      t.verdicts[difference.verdict],
      formatNumber(rows),
      formatNumber(version.mape),
      formatNumber(other.mape),
      formatPoints(difference.mean),
      `${formatPoints(difference.low)} – ${formatPoints(difference.high)}`,
      formatNumber(version.p90Coverage),
      formatNumber(other.p90Coverage),
    ]),
  });
}

function formatPoints(points: number): string {
  const shown = Math.abs(points).toFixed(2);
  if (shown === '0.00') return '0';
  return points > 0 ? `+${shown}` : `−${shown}`;
}
