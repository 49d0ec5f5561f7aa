/** Models with their live error and coverage beside what was promised. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';
import { pathOfModel } from '../models/model-pages.ts';
import type { ModelHealth, ModelHealthView } from '../models/model-views.ts';
import { formatNumber } from '../texts/numbers.ts';
import { texts } from '../texts/texts.ts';

const t = texts.overview;

export function renderModelHealth({ models, modelCount }: ModelHealth): Html {
  const columns = [t.model, t.time, t.liveError, t.promisedError, t.liveCoverage, t.promisedCoverage, t.reports];
  const table = renderTable({ label: t.models, columns, textColumns: 2, rows: models.flatMap(listRows) });
  return html`<h2 id="models">${t.models}</h2><p class="soft">${t.modelsLead}</p>${table}
<p><a href="/models">${t.allModels(modelCount)}</a></p>`;
}

function listRows({ name, servedVersion, targets }: ModelHealthView) {
  const version = servedVersion === undefined ? t.prior : `@${servedVersion}`;
  return targets.map(({ target, rows, liveMape, promisedMape, liveCoverage, promisedCoverage }) => [
    html`<a href="${pathOfModel(name)}">${name}</a> <span class="soft">${version}</span>`,
    target.toUpperCase(),
    formatOptional(liveMape),
    formatOptional(promisedMape),
    formatOptional(liveCoverage),
    formatNumber(promisedCoverage),
    formatNumber(rows),
  ]);
}

function formatOptional(value: number | null): string {
  return value === null ? t.none : formatNumber(value);
}
