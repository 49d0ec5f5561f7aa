/** Renders the pages of the delivery log: its filter, its list, one delivery with every attempt. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCsrf,
  renderDone,
  renderField,
  renderFilterFold,
  renderMistake,
  renderSecond,
  renderSelect,
  renderZone,
} from '../../pages/elements.ts';
import type { Labels } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs, renderLiveMark } from '../frame/console.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import { renderTimings } from './charts.ts';
import { nameEvent } from './hook-form.ts';
import type {
  AttemptView,
  DeliveryDetail,
  DeliveryView,
  Headers,
  HookView,
  ListedDeliveryView,
  RepositoryView,
} from './hook-views.ts';
import { renderPause } from './pause-notice.ts';
import { pathOfRepository } from './repository-pages.ts';
import { renderBody } from './request-body.ts';

const SHADES: Readonly<Record<string, string>> = {
  succeeded: 'good',
  dead: 'bad',
  blocked: 'bad',
  expired: 'warn',
  held: 'warn',
};

/** A delivery that waits for a retry has the colour of a failure. */
function shadeOf({ state, attempts }: DeliveryView): string {
  return SHADES[state] ?? (state === 'pending' && attempts > 0 ? 'warn' : '');
}

/** `query`: the filter of the log that the delivery leads back to. */
export function renderDeliveryList(
  texts: ConsoleTexts,
  deliveries: readonly ListedDeliveryView[],
  { hookPath, query = '' }: { readonly hookPath: string; readonly query?: string },
): Html {
  return html`<ul class="list log">${deliveries.map((delivery) => renderRow(texts, `${hookPath}/deliveries/${delivery.id}${query}`, delivery))}</ul>`;
}

function renderRow(texts: ConsoleTexts, path: string, delivery: ListedDeliveryView): Html {
  const t = texts.deliveries;
  const { event, subject, status_code, duration_ms, reason, attempts } = delivery;
  const facts = [
    t.attempts(attempts),
    ...(duration_ms === null ? [] : [texts.format.milliseconds(duration_ms)]),
    ...(reason === null ? [] : [texts.explain(reason)]),
  ];
  return html`<li class="item"><div class="tight"><p><a href="${path}"><strong>${nameEvent(texts, event)}</strong>${subject === null ? '' : html` <span class="url">${subject}</span>`}<span class="hidden"> ${t.number(delivery.id)}</span></a> ${renderState(texts, delivery)}${status_code === 0 ? '' : html` <span class="tag">${status_code}</span>`}</p>
<p class="small soft">${facts.join(' · ')}${renderNext(texts, delivery)}</p>
<p class="small soft"><code>${delivery.uuid}</code></p></div><span class="small soft">${renderTime(texts, delivery.created_at)}</span></li>`;
}

/** A delivery that waits in the queue of its webhook has no time to show: it may be under way already. */
function renderNext(texts: ConsoleTexts, { next_attempt_at, waits_for }: DeliveryView): Html | '' {
  if (next_attempt_at === null || waits_for === null) return '';
  const label = texts.deliveries.waitsFor[waits_for];
  return waits_for === 'turn' ? html` · ${label}` : html` · ${label} ${renderTime(texts, next_attempt_at)}`;
}

function renderState(texts: ConsoleTexts, delivery: DeliveryView): Html {
  return html`<span class="tag ${shadeOf(delivery)}">${nameOf(texts.deliveries.states, delivery.state)}</span>`;
}

function nameOf(names: Readonly<Record<string, string>>, key: string): string {
  return names[key] ?? key;
}

function renderTime(texts: ConsoleTexts, iso: string): Html {
  return renderSecond(texts, Date.parse(iso));
}

function listCrumbs(texts: ConsoleTexts, repository: RepositoryView, hookId: number) {
  const path = pathOfRepository(repository);
  return [
    { path: '/webhooks', label: texts.repositories.title },
    { path, label: repository.full_name },
    { path: `${path}/${hookId}`, label: texts.hooks.number(hookId) },
  ];
}

/** The filter, as text by field; an empty field matches all. */
export interface LogFilter {
  /** A delivery's id or number, a branch, a tag, or the number of an issue. */
  readonly q: string;
  /** The status of the last response: `500`, `5xx`, or `0` for none. */
  readonly status: string;
  readonly state: string;
  readonly event: string;
  readonly since: string;
  readonly until: string;
  /** The zone of the two times; empty without them. */
  readonly zone: string;
}

function hasFilter(filter: LogFilter): boolean {
  return Object.values(filter).some((value) => value !== '');
}

export interface LogView {
  readonly repository: RepositoryView;
  readonly hook: HookView;
  readonly filter: LogFilter;
  readonly states: readonly string[];
  readonly events: readonly string[];
  readonly deliveries: readonly ListedDeliveryView[];
  /** Whether the list begins with an older delivery than the newest. */
  readonly isContinued: boolean;
  /** The maximum number of deliveries on a page. */
  readonly pageSize: number;
  readonly nextBefore: number | undefined;
  readonly mistake: Mistake | undefined;
}

export function renderLog(texts: ConsoleTexts, view: LogView): Html {
  const t = texts.deliveries;
  const { repository, hook, filter, deliveries, nextBefore } = view;
  const hookPath = `${pathOfRepository(repository)}/${hook.id}`;
  const isFiltered = hasFilter(filter);
  const log = `${hookPath}/deliveries`;
  const list =
    deliveries.length === 0
      ? html`<p class="empty">${chooseEmpty(texts, view)}</p>`
      : renderDeliveryList(texts, deliveries, { hookPath, query: writeFilter(filter) });
  const newest = view.isContinued
    ? html`<a class="button plain" href="${log}${writeFilter(filter)}">${t.newest}</a>`
    : '';
  const older =
    nextBefore === undefined
      ? ''
      : html`<a class="button plain" href="${log}${writeFilter(filter, nextBefore)}">${deliveries.length < view.pageSize ? t.searchOlder : t.older}</a>`;
  return html`${renderCrumbs(texts, listCrumbs(texts, repository, hook.id))}
<div class="tight"><h1>${t.title} ${renderLiveMark(texts)}</h1><p class="soft">${t.lead}</p></div>${renderMistake(texts, view.mistake, labelsOfFilter(texts))}<div data-part="pause">${renderPause(texts, hook)}</div>
${renderFilterFold(texts, renderFilter(texts, view, { action: log, isFiltered }), { isOpen: isFiltered || view.mistake !== undefined })}
<div data-part="log" class="stack">${list}<p class="row">${newest}${older}</p></div>`;
}

/** Says whether nothing matches, or the search stopped before the end of a long log. */
function chooseEmpty({ deliveries: t }: ConsoleTexts, { filter, nextBefore }: LogView): string {
  if (nextBefore !== undefined) return t.noneSearched;
  return hasFilter(filter) ? t.none : t.noneYet;
}

/** The filter as the query of an address; empty without a filter. */
export function writeFilter(filter: LogFilter, before?: number): string {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  if (before !== undefined) query.set('before', String(before));
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function labelsOfFilter({ deliveries: t, format: { timeZone } }: ConsoleTexts): Labels {
  return {
    q: t.search,
    status: t.status,
    state: t.state,
    event: t.event,
    since: t.since(timeZone),
    until: t.until(timeZone),
  };
}

function renderFilter(
  texts: ConsoleTexts,
  { filter, states, events, mistake }: LogView,
  { action, isFiltered }: { readonly action: string; readonly isFiltered: boolean },
): Html {
  const t = texts.deliveries;
  const any = { value: '', label: t.any };
  const stateChoices = states.map((state) => ({ value: state, label: nameOf(t.states, state) }));
  const eventChoices = events.map((event) => ({ value: event, label: nameEvent(texts, event) }));
  return html`<form method="get" action="${action}" class="card filter">${renderZone(texts)}
${renderField({ name: 'q', label: t.search, hint: t.searchHint, value: filter.q, isOptional: true, autocomplete: 'off', mistake })}
${renderField({ name: 'status', label: t.status, hint: t.statusHint, value: filter.status, isOptional: true, autocomplete: 'off', mistake })}
${renderSelect({ name: 'state', label: t.state, choices: [any, ...stateChoices], value: filter.state, mistake })}
${renderSelect({ name: 'event', label: t.event, choices: [any, ...eventChoices], value: filter.event, mistake })}
${renderField({ name: 'since', label: t.since(texts.format.timeZone), type: 'datetime-local', value: filter.since, isOptional: true, mistake })}
${renderField({ name: 'until', label: t.until(texts.format.timeZone), type: 'datetime-local', value: filter.until, isOptional: true, mistake })}
<div class="row"><button class="plain">${t.filter}</button>${isFiltered ? html`<a href="${action}">${t.clear}</a>` : ''}</div></form>`;
}

export interface DeliveryPageView {
  readonly repository: RepositoryView;
  readonly hook: HookView;
  readonly delivery: DeliveryDetail;
  /** The filter of the log from which the page was opened. */
  readonly filter: LogFilter;
  /** Whether the delivery was just sent as a test. */
  readonly isTest: boolean;
  readonly done: string | undefined;
  readonly mistake: Mistake | undefined;
  readonly csrfToken: string;
}

export function renderDelivery(texts: ConsoleTexts, view: DeliveryPageView): Html {
  const t = texts.deliveries;
  const { repository, hook, delivery, csrfToken } = view;
  const log = `${pathOfRepository(repository)}/${hook.id}/deliveries`;
  const crumbs = [
    ...listCrumbs(texts, repository, hook.id),
    { path: `${log}${writeFilter(view.filter)}`, label: t.title },
  ];
  return html`${renderCrumbs(texts, crumbs)}
<h1 class="capital">${nameEvent(texts, delivery.event)} <span class="url">${delivery.subject ?? ''}</span> ${renderLiveMark(texts)}</h1>
<div data-part="test">${view.isTest ? renderTestResult(texts, delivery) : ''}</div>${renderDone(view.done)}${renderMistake(texts, view.mistake, {})}
<section class="card stack"><dl class="facts" data-part="facts"><dt>${t.state}</dt><dd>${renderState(texts, delivery)}</dd><dt>${t.made}</dt><dd>${renderTime(texts, delivery.created_at)}</dd>
${renderNextFact(texts, delivery)}
<dt>${t.uuid}</dt><dd><code>${delivery.uuid}</code></dd><dt>${t.numberFact}</dt><dd><code>${delivery.id}</code></dd></dl>
<form method="post" action="${log}/${delivery.id}/again">${renderCsrf(csrfToken)}<button class="plain">${t.again}</button></form></section>
<section class="stack" aria-labelledby="log"><h2 id="log">${t.log}</h2><div class="stack" data-part="attempts">
${delivery.attempt_log.length === 0 ? html`<p class="empty">${t.noLog}</p>` : delivery.attempt_log.toReversed().map((attempt) => renderAttempt(texts, attempt))}</div></section>
${renderBody(texts, delivery, hook.url)}`;
}

/** Renders the result of a test: green only when the receiver accepted it. */
function renderTestResult(texts: ConsoleTexts, { attempt_log }: DeliveryDetail): Html {
  const last = attempt_log.at(-1);
  if (last === undefined) return html`<div class="notice warn" role="status">${texts.hooks.testUnderWay}</div>`;
  if (last.outcome === 'accepted') return html`<div class="notice" role="status">${texts.hooks.testAccepted}</div>`;
  return html`<div class="notice bad" role="status"><strong>${texts.hooks.testRefused}</strong> ${last.status_code > 0 ? texts.deliveries.answered(last.status_code) : texts.explain(last.reason ?? '')}
<p class="small">${texts.hooks.testOnce}</p></div>`;
}

function renderNextFact(texts: ConsoleTexts, { next_attempt_at, waits_for }: DeliveryView): Html | '' {
  if (next_attempt_at === null || waits_for === null) return '';
  const reason =
    waits_for === 'schedule' ? '' : html` <span class="soft">${texts.deliveries.waitReasons[waits_for]}</span>`;
  return html`<dt>${texts.deliveries.next}</dt><dd>${renderTime(texts, next_attempt_at)}${reason}</dd>`;
}

function renderAttempt(texts: ConsoleTexts, attempt: AttemptView): Html {
  const t = texts.deliveries;
  const { outcome, status_code, reason, remote_address } = attempt;
  const title = `attempt-${attempt.attempt}`;
  return html`<article class="card stack" aria-labelledby="${title}"><div class="row spread"><h3 id="${title}">${t.attempt(attempt.attempt)} <span class="beside"><span class="tag ${outcome === 'accepted' ? 'good' : 'bad'}">${nameOf(t.outcomes, outcome)}</span>${status_code === 0 ? '' : html` <span class="tag">${status_code}</span>`}</span></h3><span class="small soft">${renderTime(texts, attempt.started_at)}</span></div>
${reason === null ? '' : html`<p>${texts.explain(reason)}</p>`}
${remote_address === null ? '' : html`<p class="small soft">${t.to(remote_address)}</p>`}
<div class="tight"><p class="label">${t.timings}</p>${renderTimings(texts, attempt.timings_ms)}</div>
${
  status_code === 0
    ? ''
    : html`<div class="tight"><p class="label">${t.responseBody}</p>${attempt.response_body === '' ? html`<p class="soft">${t.noResponseBody}</p>` : html`<pre>${attempt.response_body}</pre>`}</div>
<details><summary>${t.response}</summary>${renderHeaders(texts, attempt.response_headers)}</details>`
}
<details><summary>${t.request}</summary><p class="hint">${t.requestHint}</p>${renderHeaders(texts, attempt.request_headers)}</details></article>`;
}

function renderHeaders(texts: ConsoleTexts, headers: Headers): Html {
  const pairs = Object.entries(headers).flatMap(([name, values]) => [values].flat().map((value) => [name, value]));
  if (pairs.length === 0) return html`<p class="soft">${texts.deliveries.noHeaders}</p>`;
  return html`<dl class="headers">${pairs.map(([name, value]) => html`<dt><code>${name}</code></dt><dd><code>${value}</code></dd>`)}</dl>`;
}
