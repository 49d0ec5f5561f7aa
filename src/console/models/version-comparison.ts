/** Two versions that predicted the same samples: their errors, the difference and how sure it is. */
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

function renderTargets(texts: ConsoleTexts, { id, otherId, targets }: VersionComparison): Html {
  const t = texts.models;
  return renderTable(texts, {
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
      texts.format.number(rows),
      texts.format.number(version.mape),
      texts.format.number(other.mape),
      formatPoints(difference.mean),
      t.between(formatPoints(difference.low), formatPoints(difference.high)),
      texts.format.number(version.p90Coverage),
      texts.format.number(other.p90Coverage),
    ]),
  });
}

function formatPoints(points: number): string {
  const shown = Math.abs(points).toFixed(2);
  if (shown === '0.00') return '0';
  return points > 0 ? `+${shown}` : `−${shown}`;
}
