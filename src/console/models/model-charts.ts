/** Renders tables with small charts: accuracy by pod type and hour, servers, loads of samples. */
import { html } from 'hono/html';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderTable } from '../frame/table.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import { pathOfAccuracy, pathOfErrors } from './accuracy-choice.ts';
import type { Scores } from './accuracy-views.ts';
import type { LoadView, PodTypeView, ServerView } from './model-views.ts';

export function renderAccuracy(texts: ConsoleTexts, name: string, podTypes: readonly PodTypeView[]): Html {
  const t = texts.models;
  const rows = podTypes.map(({ podType, target, scores, hours }) => [
    podType || 'aggregate',
    target.toUpperCase(),
    texts.format.number(scores.mape),
    formatBias(texts, scores.bias),
    texts.format.percent(scores.p90Coverage),
    texts.format.number(scores.rows),
    renderHours(texts, hours),
  ]);
  const columns = [t.podType, t.target, 'MAPE %', t.bias, t.coverage, t.answers, t.byHour];
  return html`<section class="card stack" aria-labelledby="accuracy"><h2 id="accuracy">${t.accuracy}</h2><p class="soft">${t.accuracyLead}</p>
${podTypes.length === 0 ? html`<p class="empty">${t.noAccuracy}</p>` : renderTable(texts, { label: t.accuracy, columns, rows, textColumns: 2 })}
<p><a href="${pathOfAccuracy({ name })}">${t.overTime}</a> · <a href="${pathOfErrors({ name, window: '7d', target: 'ttft' })}">${texts.errors.title}</a></p></section>`;
}

function formatBias(texts: ConsoleTexts, bias: number): string {
  const shown = texts.format.number(Math.abs(bias));
  if (shown === '0') return '0';
  return bias > 0 ? `+${shown}` : `−${shown}`;
}

const STEP = 6;
const HEIGHT = 28;

/** The MAPE of each hour as a column; the worst hour has full height. */
function renderHours(texts: ConsoleTexts, hours: readonly (Scores | undefined)[]): Html {
  const worst = Math.max(1e-9, ...hours.map((hour) => hour?.mape ?? 0));
  const bars = hours.map((hour, index) => {
    if (hour === undefined) return '';
    const height = Math.max(1.5, (hour.mape / worst) * (HEIGHT - 3));
    return html`<rect class="up" x="${index * STEP + 1}" y="${round(HEIGHT - height)}" width="${STEP - 2}" height="${round(height)}"/>`;
  });
  const width = hours.length * STEP;
  return html`<svg class="spark" viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="${texts.models.hours(texts.format.number(worst))}">${bars}<path class="axis" d="M0 ${HEIGHT - 0.5}H${width}"/></svg>`;
}

const LISTED_SERVERS = 100;

export function renderServers(texts: ConsoleTexts, name: string, servers: readonly ServerView[]): Html {
  const t = texts.models;
  const listed = servers.slice(0, LISTED_SERVERS);
  const rows = listed.map(({ server, factors, scores, lastMs }) => [
    server === '' ? t.noServer : html`<a href="${pathOfAccuracy({ name, server })}"><code>${server}</code></a>`,
    renderFactor(factors.ttft),
    renderFactor(factors.tpot),
    describeScores(texts, scores.ttft),
    describeScores(texts, scores.tpot),
    lastMs === undefined ? '–' : renderMoment(texts, lastMs),
  ]);
  const columns = [t.server, t.level('TTFT'), t.level('TPOT'), t.errorOf('TTFT'), t.errorOf('TPOT'), t.lastReport];
  return html`<section class="card stack" aria-labelledby="servers"><h2 id="servers">${t.servers}</h2><p class="soft">${t.serversLead}</p>
${servers.length === 0 ? html`<p class="empty">${t.noServers}</p>` : renderTable(texts, { label: t.servers, columns, rows, textColumns: 1 })}
${servers.length > listed.length ? html`<p class="soft">${t.moreServers(servers.length - listed.length)}</p>` : ''}</section>`;
}

function describeScores(texts: ConsoleTexts, scores: Scores | undefined): string {
  return scores === undefined ? '–' : `${texts.format.number(scores.mape)} (${formatBias(texts, scores.bias)})`;
}

const LEVEL_WIDTH = 60;

/** Draws a bar from the middle: to the right for a server slower than the pool, to the left for a faster one. A factor of 2 fills half. */
function renderFactor(factor: number | undefined): Html | string {
  if (factor === undefined) return '–';
  const middle = LEVEL_WIDTH / 2;
  const length = Math.min(1, Math.abs(Math.log2(factor))) * (middle - 1);
  const x = factor < 1 ? middle - length : middle;
  return html`<span class="level"><svg viewBox="0 0 ${LEVEL_WIDTH} 10" aria-hidden="true"><rect class="${factor < 1 ? 'up' : 'slow'}" x="${round(x)}" y="1" width="${round(length)}" height="8"/><path class="axis" d="M${middle} 0V10"/></svg>× ${factor.toFixed(2)}</span>`;
}

export function renderLoads(texts: ConsoleTexts, loads: readonly LoadView[], samples: number): Html {
  const t = texts.models;
  return html`<section class="card stack" aria-labelledby="loads"><h2 id="loads">${t.loads}</h2><p class="soft">${t.loadsLead}</p>
${samples === 0 ? html`<p class="empty">${t.noSamples}</p>` : html`<div class="loads">${loads.map((item) => renderLoad(texts, item))}</div>`}</section>`;
}

function renderLoad(texts: ConsoleTexts, { field, edges, counts }: LoadView): Html {
  const t = texts.models;
  const total = Math.max(
    1,
    counts.reduce((sum, count) => sum + count, 0),
  );
  const rows = counts.map((count, index) => [
    nameRange(texts, edges, index),
    html`<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="8"/><rect class="up" width="${round((100 * count) / total)}" height="8"/></svg>`,
    texts.format.number(count),
  ]);
  const name = nameInput(texts, field);
  return html`<div><h3>${name}</h3>${renderTable(texts, { label: name, columns: [t.range, t.share, t.rows], rows, textColumns: 2 })}</div>`;
}

/** The name of an input of a prediction. */
export function nameInput(texts: ConsoleTexts, input: string): string {
  const names: Readonly<Record<string, string>> = texts.models.inputs;
  return names[input] ?? input;
}

/** The name of a term of the physics, or of a feature of the trees, which may be an input. */
export function namePart(texts: ConsoleTexts, part: string): string {
  const names: Readonly<Record<string, string>> = texts.models.inputs;
  return names[part] ?? texts.whatIf.partName(part);
}

export function nameRange(texts: ConsoleTexts, edges: readonly number[], index: number): string {
  const t = texts.models;
  const [from, to] = [edges[index - 1], edges[index]];
  if (from === undefined) return t.below(texts.format.number(to ?? 0));
  return to === undefined
    ? t.from(texts.format.number(from))
    : t.between(texts.format.number(from), texts.format.number(to));
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
