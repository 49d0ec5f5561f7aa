/** Renders models with their live error and coverage beside the held-out ones. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';
import { pathOfModel } from '../models/model-pages.ts';
import type { ModelHealth, ModelHealthView } from '../models/model-views.ts';

import type { ConsoleTexts } from '../texts/texts.ts';

export function renderModelHealth(texts: ConsoleTexts, { models, modelCount }: ModelHealth): Html {
  const t = texts.overview;
  const columns = [t.model, t.time, t.liveError, t.heldOutError, t.liveCoverage, t.nominalCoverage, t.reports];
  const table = renderTable(texts, {
    label: t.models,
    columns,
    textColumns: 2,
    hasCards: true,
    rows: models.flatMap((item) => listRows(texts, item)),
  });
  return html`<h2 id="models">${t.models}</h2><p class="soft">${t.modelsLead}</p>${table}
<p><a href="${modelCount === 1 && models[0] ? pathOfModel(models[0].name) : '/models'}">${t.allModels(modelCount)}</a></p>`;
}

function listRows(texts: ConsoleTexts, { name, servedVersion, targets }: ModelHealthView) {
  const version = servedVersion === undefined ? texts.overview.prior : `@${servedVersion}`;
  return targets.map(({ target, rows, liveMape, heldOutMape, liveCoverage, nominalCoverage }) => [
    html`<a href="${pathOfModel(name)}">${name}</a> <span class="soft">${version}</span>`,
    target.toUpperCase(),
    formatOptional(texts, liveMape),
    formatOptional(texts, heldOutMape),
    liveCoverage === null ? texts.overview.none : texts.format.percent(liveCoverage),
    texts.format.number(nominalCoverage),
    texts.format.number(rows),
  ]);
}

function formatOptional(texts: ConsoleTexts, value: number | null): string {
  return value === null ? texts.overview.none : texts.format.number(value);
}
