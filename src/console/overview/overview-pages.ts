/** Renders the overview: webhooks, models, troubles and next steps. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { Advice } from '../../pages/signed-in-pages.ts';
import { renderLiveMark } from '../frame/console.ts';
import { renderColumns, renderLines } from '../frame/time-chart.ts';
import type { ModelHealth } from '../models/model-views.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import type { WebhookOverview } from '../webhooks/hook-views.ts';
import { renderModelHealth } from './model-health.ts';
import { listTroubles, pathOfHookId, renderTroubles } from './troubles.ts';

export interface OverviewView {
  readonly advice: Advice | undefined;
  /** Absent in a process that does not serve webhooks. */
  readonly webhooks: WebhookOverview | undefined;
  /** Administrators see this where predictions are served. */
  readonly health: ModelHealth | undefined;
}

export function renderOverview(texts: ConsoleTexts, { advice, webhooks, health }: OverviewView): Html {
  const t = texts.overview;
  const hasHooks = webhooks !== undefined && webhooks.totals.hooks > 0;
  const troubles = listTroubles(texts, webhooks, health);
  return html`<div class="tight"><h1>${t.title} ${renderLiveMark(texts)}</h1><p class="soft">${chooseLead(texts, webhooks)}</p></div>
${renderPart('advice', advice === undefined ? '' : html`<p class="notice warn">${advice.text} <a href="${advice.path}">${advice.label}</a></p>`)}
${renderPart('tiles', hasHooks ? html`<section aria-label="${t.tiles}">${renderTiles(texts, webhooks)}</section>` : '')}
${renderPart('troubles', hasHooks || (health?.models.length ?? 0) > 0 ? html`<section class="stack" aria-labelledby="trouble">${renderTroubles(texts, troubles, health !== undefined)}</section>` : '')}
${renderPart('charts', hasHooks ? html`<section class="card stack" aria-labelledby="charts"><h2 id="charts">${t.charts}</h2>${renderCharts(texts, webhooks)}</section>` : '')}
${renderPart('models', health === undefined || health.models.length === 0 ? '' : html`<section class="card stack" aria-labelledby="models">${renderModelHealth(texts, health)}</section>`)}
${renderPart('steps', renderSteps(texts, webhooks, health))}`;
}

/** Renders an empty part too, so that the live page can fill it later. */
function renderPart(name: string, content: Html | ''): Html {
  return html`<div data-part="${name}">${content}</div>`;
}

function chooseLead(texts: ConsoleTexts, webhooks: WebhookOverview | undefined): string {
  const t = texts.overview;
  if (webhooks === undefined) return t.leadOfAccount;
  return webhooks.ofAll ? t.leadOfAll : t.lead;
}

interface Tile {
  readonly label: string;
  readonly value: string;
  readonly note: string;
  /** The page that lists what the tile counts; undefined if no page does. */
  readonly path: string | undefined;
  readonly shade: 'bad' | 'warn' | '';
}

function renderTiles(texts: ConsoleTexts, webhooks: WebhookOverview): Html {
  const tiles = [...listHookTiles(texts, webhooks), ...listDeliveryTiles(texts, webhooks)].map(
    ({ label, value, note, path, shade }) => {
      const figures = html`<span class="hint">${label}</span><strong>${value}</strong><span class="hint">${note}</span>`;
      if (path === undefined) return html`<li><div class="${shade}">${figures}</div></li>`;
      return html`<li><a href="${path}" class="${shade}">${figures}</a></li>`;
    },
  );
  return html`<ul class="figures">${tiles}</ul>`;
}

function listHookTiles(texts: ConsoleTexts, { ofAll, totals, backlog, nowMs }: WebhookOverview): Tile[] {
  const t = texts.overview;
  const { failing, disabled, switchedOff, hooks, paused } = totals;
  // The counts of an administrator cover all webhooks, while the page lists only their own.
  const list = ofAll ? undefined : '/webhooks';
  return [
    {
      label: t.failing,
      value: texts.format.count(failing),
      note: paused > 0 ? t.paused(paused) : t.ofHooks(hooks),
      path: failing > 0 ? '#trouble' : list,
      shade: failing > 0 ? 'warn' : '',
    },
    {
      label: t.disabled,
      value: texts.format.count(disabled),
      note: switchedOff > 0 ? t.switchedOff(switchedOff) : t.ofHooks(hooks),
      path: disabled > 0 ? '#trouble' : list,
      shade: disabled > 0 ? 'bad' : '',
    },
    {
      label: t.backlog,
      value: t.backlogCount(backlog.count, backlog.isCut),
      note: describeBacklog(texts, backlog, nowMs),
      path: pathOfBacklog(backlog) ?? (backlog.count > 0 && disabled > 0 ? '#trouble' : list),
      shade: '',
    },
  ];
}

/** Describes the backlog. Without an oldest delivery, all waiting deliveries are held by webhooks that are off. */
function describeBacklog(texts: ConsoleTexts, { count, oldest }: WebhookOverview['backlog'], nowMs: number): string {
  const t = texts.overview;
  if (oldest !== undefined) return t.oldest(texts.format.duration(nowMs - oldest.createdAtMs));
  return count > 0 ? t.heldByOff : t.nothingWaits;
}

function pathOfBacklog({ oldest }: WebhookOverview['backlog']): string | undefined {
  return oldest && `${pathOfHookId(oldest.repository, oldest.hookId)}/deliveries?state=pending`;
}

function listDeliveryTiles(texts: ConsoleTexts, { hour }: WebhookOverview): Tile[] {
  const t = texts.overview;
  const { accepted, failed, medianMs, p95Ms } = hour;
  const count = accepted + failed;
  return [
    {
      label: t.delivered,
      value: texts.format.count(count),
      note: count === 0 ? t.noAttempts : t.successRate(texts.format.percent((100 * accepted) / count)),
      path: '#charts',
      shade: count > 0 && accepted < count * 0.9 ? 'warn' : '',
    },
    {
      label: t.responseTime,
      value: medianMs === null ? t.none : texts.format.milliseconds(medianMs),
      note: p95Ms === null ? t.noAttempts : t.median(texts.format.milliseconds(p95Ms)),
      path: '#charts',
      shade: '',
    },
  ];
}

function renderCharts(texts: ConsoleTexts, { hour, minutes }: WebhookOverview): Html {
  const t = texts.overview;
  const { accepted, failed, medianMs, p95Ms } = hour;
  const moments = minutes.map(({ startMs }) => startMs);
  const counts = renderColumns(texts, {
    title: t.perMinute,
    summary: t.perMinuteSummary(accepted, failed),
    moments,
    series: [
      { kind: 'up', label: t.accepted, values: minutes.map((minute) => minute.accepted) },
      { kind: 'down', label: t.failed, values: minutes.map((minute) => minute.failed) },
    ],
  });
  const times = renderLines(texts, {
    title: t.responseTime,
    summary:
      medianMs === null
        ? t.noAttempts
        : t.timeSummary(texts.format.milliseconds(medianMs), texts.format.milliseconds(p95Ms ?? medianMs)),
    moments,
    unit: ' ms',
    series: [
      { kind: 'up', label: t.medianLine, values: minutes.map((minute) => minute.medianMs) },
      { kind: 'slow', label: t.p95Line, values: minutes.map((minute) => minute.p95Ms) },
    ],
  });
  return html`<div class="charts">${counts}${times}</div>`;
}

/** Renders the first steps of a person who has created nothing yet. */
function renderSteps(
  texts: ConsoleTexts,
  webhooks: WebhookOverview | undefined,
  health: ModelHealth | undefined,
): Html | '' {
  const { repository, hook, model, application, token } = texts.overview.steps;
  const steps = [
    ...(webhooks?.totals.repositories === 0 ? [repository] : []),
    ...(webhooks !== undefined && webhooks.totals.repositories > 0 && webhooks.totals.hooks === 0 ? [hook] : []),
    ...(health?.models.length === 0 ? [model] : []),
    ...(webhooks === undefined || webhooks.totals.hooks === 0 ? [application, token] : []),
  ];
  if (steps.length === 0) return '';
  const tiles = steps.map(
    ({ path, label, about }) =>
      html`<li><a href="${path}"><strong>${label}</strong> <span class="hint">${about}</span></a></li>`,
  );
  return html`<section class="tight" aria-labelledby="next"><h2 id="next">${texts.overview.next}</h2><ul class="tiles">${tiles}</ul></section>`;
}
