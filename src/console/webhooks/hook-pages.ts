/** Renders the pages of a repository's webhooks and of one webhook. */
import { html } from 'hono/html';
import {
  type Mistake,
  markWrong,
  renderCheck,
  renderCsrf,
  renderDone,
  renderField,
  renderMistake,
  renderMoment,
  renderQuestion,
  renderZone,
} from '../../pages/elements.ts';
import type { Labels } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs, renderLiveMark } from '../frame/console.ts';
import { renderColumns } from '../frame/time-chart.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import { renderDay, sumHours } from './charts.ts';
import { renderDeliveryList } from './delivery-pages.ts';
import { listKinds, nameEvent, nameProfile } from './hook-form.ts';
import type { HookView, ListedDeliveryView, RepositoryView } from './hook-views.ts';
import { renderPause } from './pause-notice.ts';
import { pathOfRepository } from './repository-pages.ts';

export function pathOfHook(repository: RepositoryView, id: number): string {
  return `${pathOfRepository(repository)}/${id}`;
}

export interface HooksView {
  readonly repository: RepositoryView;
  readonly hooks: readonly HookView[];
  readonly done: string | undefined;
}

export function renderHooks(texts: ConsoleTexts, { repository, hooks, done }: HooksView): Html {
  const path = pathOfRepository(repository);
  return html`${renderCrumbs(texts, [{ path: '/webhooks', label: texts.repositories.title }])}
<div class="row spread"><div class="tight"><h1>${repository.full_name}</h1>${repository.description ? html`<p class="soft">${repository.description}</p>` : ''}</div><a class="button" href="${path}/new">${texts.hooks.create}</a></div>
${renderDone(done)}
${hooks.length === 0 ? html`<p class="empty">${texts.hooks.none}</p>` : html`<ul class="list hooks">${hooks.map((hook) => renderHookEntry(texts, repository, hook))}</ul>`}
<p class="small soft">${texts.hooks.sources} <a href="/docs/api#tag-events">${texts.hooks.sourcesLink}</a></p>`;
}

function renderHookEntry(texts: ConsoleTexts, repository: RepositoryView, hook: HookView): Html {
  return html`<li class="item"><div class="tight">
<p><a href="${pathOfHook(repository, hook.id)}"><strong class="url short">${hook.url}</strong></a></p>
<p class="tags">${renderState(texts, hook)}${hook.paused_until === null ? '' : html`<span class="tag warn">${texts.hooks.paused}</span>`}${renderWaiting(texts, hook)}${nameKinds(texts, hook).map((kind) => html`<span class="tag">${kind}</span>`)}</p>
<p class="small soft">${describeResult(texts, hook)}</p></div>
<div class="glance">${renderDay(texts, hook.lastDay)}</div></li>`;
}

type HookState = keyof ConsoleTexts['hooks']['states'];

function stateOf({ disabled_at, isSwitchedOff, hookQueue, result, result_code }: HookView): HookState {
  if (disabled_at !== null) return isSwitchedOff ? 'off' : 'disabled';
  if (hookQueue.failingSinceMs !== null) return 'failing';
  if (result === null) return 'fresh';
  return isSuccess(result_code) ? 'working' : 'refused';
}

const SHADES: Record<HookState, string> = {
  fresh: '',
  working: 'good',
  refused: 'warn',
  failing: 'warn',
  disabled: 'bad',
  off: '',
};

function isSuccess(code: number): boolean {
  return code >= 200 && code < 300;
}

function renderState(texts: ConsoleTexts, hook: HookView): Html {
  const state = stateOf(hook);
  return html`<span class="tag ${SHADES[state]}">${texts.hooks.states[state]}</span>`;
}

function renderWaiting(texts: ConsoleTexts, { disabled_at, hookQueue }: HookView): Html | '' {
  if (hookQueue.waiting === 0) return '';
  const label =
    disabled_at === null ? texts.hooks.waitingShort(hookQueue.waiting) : texts.hooks.heldShort(hookQueue.waiting);
  return html`<span class="tag">${label}</span>`;
}

function nameKinds(texts: ConsoleTexts, hook: HookView): string[] {
  const kinds = listKinds(hook).map((kind) => nameEvent(texts, kind));
  return kinds.length === 0 ? [texts.hooks.noKinds] : kinds;
}

function describeResult(texts: ConsoleTexts, { disabled_reason, result, result_code }: HookView): string {
  if (disabled_reason !== null) return texts.explain(disabled_reason);
  if (result === null) return '';
  return result_code === 0
    ? `${texts.hooks.noAnswer}${texts.marks.colon}${texts.explain(result)}`
    : `${texts.hooks.lastResult}: ${result_code}`;
}

export interface HookPageView {
  readonly repository: RepositoryView;
  readonly hook: HookView;
  readonly deliveries: readonly ListedDeliveryView[];
  /** The test events that can be sent. */
  readonly testEvents: readonly string[];
  readonly done: string | undefined;
  readonly mistake?: Mistake | undefined;
  /** The form that was refused. */
  readonly sent?: URLSearchParams | undefined;
  readonly csrfToken: string;
  /** Administrators alone may read the audit log. */
  readonly isAdmin: boolean;
}

export function renderHook(texts: ConsoleTexts, view: HookPageView): Html {
  const t = texts.hooks;
  const { repository, hook, csrfToken } = view;
  const path = pathOfHook(repository, hook.id);
  const crumbs = [
    { path: '/webhooks', label: texts.repositories.title },
    { path: pathOfRepository(repository), label: repository.full_name },
  ];
  return html`${renderCrumbs(texts, crumbs)}
<div class="tight"><h1>${t.number(hook.id)} <span class="beside" data-part="state">${renderState(texts, hook)}</span> ${renderLiveMark(texts)}</h1><p class="url soft" data-part="url">${hook.url}</p></div>
${renderDone(view.done)}${renderMistake(texts, view.mistake, labelsOf(texts, view))}<div data-part="trouble" class="stack">${renderTrouble(texts, hook, { path, csrfToken })}${renderPause(texts, hook)}</div>
<div class="row">${renderTest(texts, view, path)}
<div class="row" data-part="actions"><a class="button plain" href="${path}/change">${t.edit}</a>
${hook.disabled_at === null && hook.hookQueue.waiting > 0 ? html`<form method="post" action="${path}/send-waiting">${renderCsrf(csrfToken)}<button class="plain">${t.sendWaiting}</button></form>` : ''}
${hook.disabled_at === null ? renderQuestion(texts, { label: t.disable, question: t.askDisable, action: `${path}/disable`, csrfToken }) : ''}</div></div>
<div data-part="day">${renderLastDay(texts, hook)}</div>
<section class="stack" data-part="deliveries" aria-labelledby="deliveries"><h2 id="deliveries">${t.recent}</h2>
${view.deliveries.length === 0 ? html`<p class="empty">${texts.deliveries.noneYet}</p>` : html`${renderDeliveryList(texts, view.deliveries, { hookPath: path })}<p><a class="button plain quiet" href="${path}/deliveries">${t.allDeliveries}</a></p>`}</section>
${renderSettings(texts, view)}${renderKey(texts, view, path)}${renderReplay(texts, view, path)}${renderDelete(texts, view, path)}`;
}

function labelsOf({ hooks: t, format }: ConsoleTexts, { testEvents }: HookPageView): Labels {
  const labels = { password: t.newKey, since: t.replaySince(format.timeZone), confirm: t.deleteConfirm };
  return testEvents.length === 1 ? labels : { ...labels, event: t.testEvent };
}

/** Shows the choice of an event only if there are several to choose from. */
function renderTest(texts: ConsoleTexts, { hook, testEvents, mistake, csrfToken }: HookPageView, path: string): Html {
  const t = texts.hooks;
  const options = testEvents.map((event) => {
    const label = event === 'notice' ? t.testNotice : nameEvent(texts, event);
    return html`<option value="${event}">${label}</option>`;
  });
  return html`<form method="post" action="${path}/test" class="row choice">${renderCsrf(csrfToken)}
${options.length === 1 ? '' : html`<select name="event" aria-label="${t.testEvent}"${markWrong('event', mistake)}>${options}</select>`}<button${hook.disabled_at === null ? '' : html` class="plain"`}>${t.test}</button></form>`;
}

function renderTrouble(
  texts: ConsoleTexts,
  { disabled_at, disabled_reason, isSwitchedOff, hookQueue }: HookView,
  { path, csrfToken }: { readonly path: string; readonly csrfToken: string },
): Html | '' {
  const t = texts.hooks;
  if (disabled_at !== null)
    return html`<div class="notice ${isSwitchedOff ? '' : 'bad'} stack"><p><strong>${t.disabledSince} ${renderMoment(texts, Date.parse(disabled_at))}${texts.marks.stop}</strong>${texts.explain(disabled_reason ?? '')}${texts.marks.stop}</p>
${hookQueue.waiting === 0 ? '' : html`<p>${t.held(hookQueue.waiting)}</p>`}
<form method="post" action="${path}/enable">${renderCsrf(csrfToken)}<button>${t.enable}</button></form></div>`;
  if (hookQueue.failingSinceMs === null) return '';
  return html`<div class="notice warn"><p><strong>${t.failingSince} ${renderMoment(texts, hookQueue.failingSinceMs)}</strong>${texts.marks.comma}${t.attempts(hookQueue.fails)}${texts.marks.stop}${t.willDisable}</p></div>`;
}

function renderLastDay(texts: ConsoleTexts, { lastDay, isChartCut, result, result_code }: HookView): Html {
  const t = texts.hooks;
  const { succeeded, failed, waiting } = sumHours(lastDay);
  const isQuiet = succeeded + failed + waiting === 0;
  return html`<section class="card stack" aria-labelledby="day"><h2 id="day">${t.lastDay}</h2>
${isQuiet ? html`<p class="soft">${t.quiet}</p>` : html`${isChartCut ? html`<p>${t.chartCut}</p>` : ''}${renderDayChart(texts, lastDay)}`}
<h3>${t.lastResult}</h3>${renderResult(texts, result, result_code)}</section>`;
}

function renderDayChart(texts: ConsoleTexts, hours: HookView['lastDay']): Html {
  const t = texts.hooks;
  const { succeeded, failed, waiting } = sumHours(hours);
  return renderColumns(texts, {
    title: t.perHour,
    summary: t.chartSummary(succeeded, failed, waiting),
    moments: hours.map(({ startMs }) => startMs),
    series: [
      { kind: 'up', label: t.chart.succeeded, values: hours.map((hour) => hour.succeeded) },
      { kind: 'down', label: t.chart.failed, values: hours.map((hour) => hour.failed) },
      { kind: 'open', label: t.chart.waiting, values: hours.map((hour) => hour.waiting) },
    ],
  });
}

function renderResult(texts: ConsoleTexts, result: string | null, code: number): Html {
  const t = texts.hooks;
  if (result === null) return html`<p class="soft">${t.noResult}</p>`;
  if (code === 0) return html`<p><span class="tag bad">${t.noAnswer}</span> ${texts.explain(result)}</p>`;
  const shade = isSuccess(code) ? 'good' : 'bad';
  return html`<p><span class="tag ${shade}">${code}</span>${result === '' ? html` <span class="soft">${t.emptyAnswer}</span>` : ''}</p>${result === '' ? '' : html`<pre class="excerpt">${excerpt(result)}</pre>`}`;
}

const EXCERPT_LENGTH = 600;

/** Shows the start of the last answer; the delivery log has all of it. */
function excerpt(text: string): string {
  return text.length <= EXCERPT_LENGTH ? text : `${text.slice(0, EXCERPT_LENGTH)} …`;
}

function renderSettings(texts: ConsoleTexts, { repository, hook, isAdmin }: HookPageView): Html {
  const t = texts.hooks;
  const changes = new URLSearchParams({ repository: repository.full_name, hook: String(hook.id) }).toString();
  return html`<section class="card stack" aria-labelledby="settings"><h2 id="settings">${t.settings}</h2>
<dl class="facts"><dt>${t.events}</dt><dd>${nameKinds(texts, hook).join(texts.marks.list)}</dd>
<dt>${t.proof}</dt><dd>${hook.encryption_type === 1 ? t.signature : t.password}</dd>
<dt>${t.profile}</dt><dd>${nameProfile(hook.profile)}</dd><dt>${t.since}</dt><dd>${texts.format.date(Date.parse(hook.created_at))}</dd></dl>
${isAdmin ? html`<p><a href="/admin/activity?${changes}">${t.changes}</a></p>` : ''}</section>`;
}

function renderKey(texts: ConsoleTexts, { hook, mistake, csrfToken }: HookPageView, path: string): Html {
  const t = texts.hooks;
  const former = hook.formerKeyUntilMs;
  return html`<section class="card stack" aria-labelledby="key"><h2 id="key">${t.key}</h2>
${hook.password === '' ? html`<p class="notice warn">${t.noKey}</p>` : html`<details><summary>${t.showKey}</summary><code class="secret" data-copy>${hook.password}</code></details>`}
${former === null ? '' : html`<p>${t.formerUntil(hook.formerKeys)} ${renderMoment(texts, former)}${texts.marks.stop}</p>`}
<h3>${t.changeKey}</h3><p class="soft">${t.changeKeyLead}</p>
<form method="post" action="${path}/key" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'password', label: t.newKey, hint: t.newKeyHint, autocomplete: 'off', isOptional: true, mistake })}
<button class="plain">${t.changeKey}</button></form>
${hook.password === '' ? '' : renderQuestion(texts, { label: t.removeKey, question: t.askRemoveKey, action: `${path}/remove-key`, csrfToken })}</section>`;
}

function renderReplay(texts: ConsoleTexts, { mistake, sent, csrfToken }: HookPageView, path: string): Html {
  const t = texts.hooks;
  return html`<section class="card stack" aria-labelledby="replay"><h2 id="replay">${t.replay}</h2><p class="soft">${t.replayLead}</p>
<form method="post" action="${path}/replay" class="stack">${renderCsrf(csrfToken)}${renderZone(texts)}
${renderField({ name: 'since', label: t.replaySince(texts.format.timeZone), type: 'datetime-local', value: sent?.get('since') ?? '', mistake })}
<button class="plain">${t.replaySubmit}</button></form></section>`;
}

function renderDelete(texts: ConsoleTexts, { mistake, csrfToken }: HookPageView, path: string): Html {
  const t = texts.hooks;
  return html`<section class="card stack" aria-labelledby="delete"><h2 id="delete">${t.delete}</h2><p class="soft">${t.deleteLead}</p>
<form method="post" action="${path}/delete" class="stack">${renderCsrf(csrfToken)}
<div>${renderCheck({ name: 'confirm', value: 'yes', label: t.deleteConfirm, mistake })}</div>
<button class="danger">${t.deleteSubmit}</button></form></section>`;
}
