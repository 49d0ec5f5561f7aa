/** Renders the pages of models: the list, one model with its versions, and promotion. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCsrf,
  renderDone,
  renderHidden,
  renderMistake,
  renderMoment,
} from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs } from '../frame/console.ts';
import { renderTable } from '../frame/table.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import { namePart, renderAccuracy, renderLoads, renderServers } from './model-charts.ts';
import type {
  LearnedView,
  ModelEntry,
  ModelView,
  PromotionView,
  ScrapedServerView,
  VersionComparison,
  VersionView,
} from './model-views.ts';
import { renderScrapedServers } from './scraped-servers.ts';
import { renderComparison } from './version-comparison.ts';

export function pathOfModel(name: string): string {
  return `/models/model?${new URLSearchParams({ name }).toString()}`;
}

export function renderModels(
  texts: ConsoleTexts,
  models: readonly ModelEntry[],
  scraped: readonly ScrapedServerView[] | undefined,
): Html {
  const t = texts.models;
  const entries = models.map(
    (
      model,
    ) => html`<li class="item"><div class="tight"><p><a href="${pathOfModel(model.name)}"><strong class="url">${model.name}</strong></a> ${renderServed(texts, model)}</p>
<p class="small soft">${t.versions(model.versionCount)} · ${describeRows(texts, model)}${describeScores(texts, model.learned)}</p></div>
<span class="small soft">${model.lastTraining === undefined ? '' : html`${nameOutcome(texts, model.lastTraining.outcome)} ${renderMoment(texts, model.lastTraining.atMs)}`}</span></li>`,
  );
  return html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${models.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${entries}</ul>`}
${scraped === undefined ? '' : renderScrapedServers(texts, scraped)}`;
}

function renderServed(texts: ConsoleTexts, { servedVersion }: ModelEntry): Html {
  if (servedVersion === undefined) return html`<span class="tag">${texts.models.prior}</span>`;
  return html`<span class="tag good">${texts.models.serves(servedVersion)}</span>`;
}

function nameOutcome(texts: ConsoleTexts, outcome: string): string {
  return texts.models.outcomes[outcome] ?? outcome;
}

export interface ModelPage {
  readonly model: ModelView;
  readonly done: string | undefined;
  readonly mistake: Mistake | undefined;
}

export function renderModel(texts: ConsoleTexts, { model, done, mistake }: ModelPage): Html {
  const t = texts.models;
  const { name, previous, lastTraining } = model;
  const rollback = `/models/rollback?${new URLSearchParams({ name }).toString()}`;
  return html`${renderCrumbs(texts, [{ path: '/models', label: t.title }])}
<div class="tight"><h1 class="url">${name} <span class="beside">${renderServed(texts, model)}</span></h1>
<p class="soft">${describeRows(texts, model)}${lastTraining === undefined ? '' : html` · ${nameOutcome(texts, lastTraining.outcome)} ${renderMoment(texts, lastTraining.atMs)}`}</p></div>
${renderDone(done)}${renderMistake(texts, mistake, {})}
<p><a href="/models/what-if?${new URLSearchParams({ name }).toString()}">${texts.whatIf.link}</a></p>
<p><a href="/models/effects?${new URLSearchParams({ name }).toString()}">${texts.whatIf.effects.link}</a></p>
<p><a href="/models/capacity?${new URLSearchParams({ name }).toString()}">${texts.whatIf.capacity.link}</a></p>
${previous === undefined ? '' : html`<p><a class="button plain" href="${rollback}">${t.rollback(`${name}@${previous}`)}</a></p>`}
${renderAccuracy(texts, name, model.podTypes)}${renderServers(texts, name, model.servers)}${renderLoads(texts, model.loads, model.samples)}
<section class="stack" aria-labelledby="versions"><h2 id="versions">${t.versionsTitle}</h2>
${model.versions.length === 0 ? html`<p class="empty">${t.noVersions}</p>` : html`<ul class="list">${model.versions.map((version) => renderVersion(texts, name, version))}</ul>`}</section>
${renderPromotions(texts, name, model.promotions)}`;
}

function renderVersion(texts: ConsoleTexts, name: string, version: VersionView): Html {
  const t = texts.models;
  const promote = `/models/promote?${new URLSearchParams({ name, version: String(version.version) }).toString()}`;
  return html`<li class="stack"><div class="item"><div class="tight"><p><strong class="url">${version.id}</strong> ${version.isPromoted ? html`<span class="tag good">${t.served}</span>` : ''}</p>
<p class="small soft">${t.made} ${renderMoment(texts, version.createdAtMs)}${version.parentVersion === undefined ? '' : ` · ${t.after(`${name}@${version.parentVersion}`)}`}</p></div>
${version.isPromoted ? '' : html`<a class="button plain quiet" href="${promote}">${t.promote}<span class="hidden"> ${version.id}</span></a>`}</div>
<details><summary>${t.lineage}<span class="hidden"> ${version.id}</span></summary>${renderLineage(texts, version)}</details></li>`;
}

/** Shows two counts, since rows of a file are used for training but are not samples. */
function describeRows(texts: ConsoleTexts, { trainedRows, samples }: ModelEntry): string {
  const t = texts.models;
  return [...(trainedRows === undefined ? [] : [t.trainedWith(trainedRows)]), t.samples(samples)].join(' · ');
}

/** The scores of the slot for all pod types on held-out rows of the training. */
function describeScores(texts: ConsoleTexts, learned: readonly LearnedView[]): string {
  const scores = learned
    .filter(({ podType, validation }) => podType === 'all' && validation !== undefined)
    .map(({ target, validation }) => `${target.toUpperCase()} ${texts.format.number(validation!.mape)} %`);
  return scores.length === 0 ? '' : ` · ${texts.models.heldOut} ${scores.join(', ')}`;
}

function renderLineage(texts: ConsoleTexts, version: VersionView): Html {
  const { source, parameters, learned, checksum, sizeBytes } = version;
  const facts = Object.entries({ ...source, ...flatten(texts, parameters) }).map(
    ([name, value]) =>
      html`<dt>${nameSource(texts, name)}</dt><dd>${isLogError(name) ? formatFactor(value) : formatValue(texts, value)}</dd>`,
  );
  return html`<div class="stack lineage"><dl class="facts">${facts}
<dt>${texts.models.size}</dt><dd>${texts.models.bytes(sizeBytes)}</dd><dt>SHA-256</dt><dd><code>${checksum}</code></dd></dl>
${learned.length === 0 ? '' : renderLearned(texts, version)}</div>`;
}

/** Whether a value is stored as a mean absolute difference of logarithms, and shown as a factor. */
function isLogError(name: string): boolean {
  return name === 'championError' || name === 'challengerError';
}

function formatFactor(logError: unknown): string {
  return typeof logError === 'number' ? `× ${Math.exp(logError).toFixed(2)}` : String(logError);
}

/** Writes an object as words. A loss has a kind and may have a parameter: `absolute`, `huber 0.1`. */
function flatten(texts: ConsoleTexts, parameters: VersionView['parameters']): Readonly<Record<string, unknown>> {
  const { losses } = texts.models;
  const flat = Object.entries(parameters).map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'object' && value !== null
      ? Object.values(value)
          .map((part) => losses[String(part)] ?? part)
          .join(' ')
      : value,
  ]);
  return Object.fromEntries(flat);
}

/** Shows a stored key of a model's origin as words: `challengerError` → `challenger error`. */
function nameSource(texts: ConsoleTexts, name: string): string {
  return texts.models.sources[name] ?? name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}

function formatValue(texts: ConsoleTexts, value: unknown): string {
  if (typeof value === 'number') return Number.isInteger(value) ? texts.format.number(value) : value.toPrecision(3);
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string'))
    return value.join(', ') || texts.models.noneOf;
  return Array.isArray(value) && value.length === 0 ? texts.models.noneOf : (JSON.stringify(value) ?? '');
}

function renderLearned(texts: ConsoleTexts, { id, learned }: VersionView): Html {
  const t = texts.models;
  const table = renderTable(texts, {
    label: `${t.learned}, ${id}`,
    columns: [t.podType, t.target, t.rows, t.trees, t.treeShare, t.heldOutRows, 'MAPE %', 'MdAPE %'],
    textColumns: 2,
    rows: learned.map(({ podType, target, rows, trees, treeShare, validation }) => [
      podType === 'all' ? t.allPodTypes : podType,
      target.toUpperCase(),
      texts.format.number(rows),
      texts.format.number(trees),
      texts.format.number(treeShare),
      validation === undefined ? '–' : texts.format.number(validation.rows),
      validation === undefined ? '–' : texts.format.number(validation.mape),
      validation === undefined ? '–' : texts.format.number(validation.mdape),
    ]),
  });
  const formulas = learned.map(({ podType, target, physics }) => {
    const terms = Object.entries(physics).map(([name, price]) => `${formatPrice(price)} × ${namePart(texts, name)}`);
    return html`<li><code>${target.toUpperCase()} (${podType === 'all' ? t.allPodTypes : podType}) = ${terms.join(' + ') || '0'}</code></li>`;
  });
  return html`${table}<div class="tight"><p class="label">${t.physics}</p><ul class="formulas">${formulas}</ul></div>`;
}

function formatPrice(price: number): string {
  return String(Number(price.toPrecision(3)));
}

function renderPromotions(texts: ConsoleTexts, name: string, promotions: readonly PromotionView[]): Html | '' {
  if (promotions.length === 0) return '';
  const entries = promotions.map(
    ({
      version,
      atMs,
      reason,
      undoneAtMs,
    }) => html`<li class="item"><div class="tight"><p><strong class="url">${name}@${version}</strong>${undoneAtMs === null ? '' : html` <span class="tag warn">${texts.models.undone}</span>`}</p>
<p class="small soft">${texts.explain(reason)}</p></div><span class="small soft">${renderMoment(texts, atMs)}</span></li>`,
  );
  return html`<section class="stack" aria-labelledby="history"><h2 id="history">${texts.models.history}</h2><ul class="list">${entries}</ul></section>`;
}

export interface PromotionPage {
  readonly model: ModelView;
  readonly version: VersionView;
  /** The comparison with the served version; absent if no other version is served. */
  readonly comparison: VersionComparison | undefined;
  readonly csrfToken: string;
}

export function renderPromotion(texts: ConsoleTexts, { model, version, comparison, csrfToken }: PromotionPage): Html {
  const t = texts.models;
  const { name } = model;
  const served = model.versions.find((candidate) => candidate.isPromoted);
  const fields = { name, version: String(version.version) };
  return html`${renderTrail(texts, name)}<h1 class="url">${t.promoteTitle(version.id)}</h1>
<section class="card stack"><p>${served === undefined ? t.promoteFirst(version.id) : t.promoteLead(version.id, served.id)}</p>
<dl class="facts">${[version, ...(served === undefined || served.id === version.id ? [] : [served])].map((one) => html`<dt>${one.id}</dt><dd>${t.made} ${renderMoment(texts, one.createdAtMs)}</dd>`)}</dl>
${comparison === undefined ? '' : renderComparison(texts, comparison)}
<p class="soft">${t.promoteEffect}</p>
<form method="post" action="/models/promote" class="row">${renderCsrf(csrfToken)}${renderHidden(fields)}<button>${t.promoteSubmit}</button><a href="${pathOfModel(name)}">${texts.cancel}</a></form></section>`;
}

export interface RollbackPage {
  readonly model: ModelView;
  /** The comparison of the served version with the one that the rollback leads to. */
  readonly comparison: VersionComparison | undefined;
  readonly csrfToken: string;
}

export function renderRollback(texts: ConsoleTexts, { model, comparison, csrfToken }: RollbackPage): Html {
  const t = texts.models;
  const { name, servedVersion, previous } = model;
  const content =
    previous === undefined
      ? html`<p>${t.noRollback}</p>`
      : html`<p>${t.rollbackLead(`${name}@${servedVersion}`, `${name}@${previous}`)}</p>
${comparison === undefined ? '' : renderComparison(texts, comparison)}<p class="soft">${t.rollbackEffect}</p>
<form method="post" action="/models/rollback" class="row">${renderCsrf(csrfToken)}${renderHidden({ name, previous: String(previous) })}<button>${t.rollbackSubmit}</button><a href="${pathOfModel(name)}">${texts.cancel}</a></form>`;
  return html`${renderTrail(texts, name)}<h1 class="url">${t.rollbackTitle(name)}</h1><section class="card stack">${content}</section>`;
}

function renderTrail(texts: ConsoleTexts, name: string): Html {
  return renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ]);
}
