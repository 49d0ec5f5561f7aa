/** Renders the page of a model's error and coverage over time, with versions and drift alarms. */
import { html } from 'hono/html';
import { renderHidden, renderMoment, renderSelect } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs } from '../frame/console.ts';
import { renderTable } from '../frame/table.ts';
import { type Mark, renderLines } from '../frame/time-chart.ts';

import type { ConsoleTexts } from '../texts/texts.ts';
import { type AccuracyChoice, pathOfAccuracy, WINDOWS, type WindowName } from './accuracy-choice.ts';
import { type AccuracyStep, averageRows } from './accuracy-steps.ts';
import type { DriftAlarmHour, TargetName } from './accuracy-views.ts';
import { pathOfModel } from './model-pages.ts';
import type { PromotionView } from './model-views.ts';

const NOMINAL_COVERAGE = 90;

export interface AccuracyPage {
  readonly choice: AccuracyChoice & { readonly window: WindowName };
  readonly podTypes: readonly string[];
  readonly servers: readonly string[];
  readonly targets: readonly TargetSteps[];
  readonly promotions: readonly PromotionView[];
  readonly alarms: readonly DriftAlarmHour[];
  readonly fromMs: number;
}

export interface TargetSteps {
  readonly target: TargetName;
  readonly steps: readonly AccuracyStep[];
}

export function renderAccuracyPage(texts: ConsoleTexts, page: AccuracyPage): Html {
  const t = texts.accuracy;
  const { choice, targets } = page;
  const part = choice.server ?? choice.podType;
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(choice.name), label: choice.name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${choice.name}</strong>${part === undefined ? '' : html` · <span class="url">${part}</span>`}</p><p class="soft">${t.lead(texts.format.zone(page.fromMs))}</p></div>
${renderChoices(texts, page)}
${targets.length === 0 ? html`<p class="empty">${t.noReports}</p>` : targets.map((target) => renderTarget(texts, page, target))}
${renderEvents(texts, page)}`;
}

function renderChoices(texts: ConsoleTexts, { choice, podTypes, servers }: AccuracyPage): Html {
  const t = texts.accuracy;
  const { window, podType, server } = choice;
  const windows = Object.keys(WINDOWS).map((name) =>
    renderChoice(t.windows[name as WindowName], { ...choice, window: name as WindowName }, name === window),
  );
  const ofPodTypes = podTypes.map((name) =>
    renderChoice(name, { ...choice, podType: name, server: undefined }, name === podType && server === undefined),
  );
  return html`<section class="card stack"><nav aria-label="${t.window}"><p class="label">${t.window}</p><ul class="choices">${windows}</ul></nav>
${podTypes.length === 0 ? '' : html`<nav aria-label="${t.podTypes}"><p class="label">${t.podTypes}</p><ul class="choices">${ofPodTypes}</ul></nav>`}
${servers.length === 0 ? '' : renderServerForm(texts, choice, servers)}</section>`;
}

function renderChoice(label: string, choice: AccuracyChoice, isCurrent: boolean): Html {
  const current = isCurrent ? html` aria-current="true"` : '';
  return html`<li><a class="url" href="${pathOfAccuracy(choice)}"${current}>${label}</a></li>`;
}

function renderServerForm(
  texts: ConsoleTexts,
  { name, window, server }: AccuracyPage['choice'],
  servers: readonly string[],
): Html {
  const t = texts.accuracy;
  const choices = [
    { value: '', label: t.allServers },
    ...servers.map((address) => ({ value: address, label: address })),
  ];
  return html`<form method="get" action="/models/accuracy" class="filter">${renderHidden({ name, window })}
${renderSelect({ name: 'server', label: t.server, choices, value: server ?? '' })}<button class="plain quiet">${t.showServer}</button></form>`;
}

function renderTarget(texts: ConsoleTexts, page: AccuracyPage, { target, steps }: TargetSteps): Html {
  const name = target.toUpperCase();
  return html`<section class="card stack" aria-labelledby="${target}"><h2 id="${target}">${name}</h2>
<div class="charts">${renderError(texts, page, { target, steps })}${renderCoverage(texts, page, { target, steps })}</div>
<details><summary>${texts.accuracy.values(name)}</summary>${renderValues(texts, name, steps)}</details></section>`;
}

function renderError(texts: ConsoleTexts, page: AccuracyPage, { target, steps }: TargetSteps): Html {
  const t = texts.accuracy;
  const heldOut = steps.at(-1)?.heldOutMape ?? null;
  const heldOutSummary = heldOut === null ? '' : t.summaryHeldOut(texts.format.number(heldOut));
  return renderLines(texts, {
    ...chartOf(texts, page, { target, steps }),
    title: t.error(target.toUpperCase()),
    summary: summarize(texts, steps, { read: ({ mape }) => mape, format: texts.format.number }) + heldOutSummary,
    series: [
      { kind: 'up', label: t.errorLine, values: steps.map(({ mape }) => mape) },
      { kind: 'baseline', label: t.heldOut, values: steps.map(({ heldOutMape }) => heldOutMape) },
    ],
  });
}

function renderCoverage(texts: ConsoleTexts, page: AccuracyPage, { target, steps }: TargetSteps): Html {
  const t = texts.accuracy;
  return renderLines(texts, {
    ...chartOf(texts, page, { target, steps }),
    title: t.coverage(target.toUpperCase()),
    summary: summarize(texts, steps, { read: ({ p90Coverage }) => p90Coverage, format: texts.format.percent }),
    top: 100,
    series: [
      { kind: 'up', label: t.coverageLine, values: steps.map(({ p90Coverage }) => p90Coverage) },
      { kind: 'baseline', label: t.nominalCoverage, values: steps.map(() => NOMINAL_COVERAGE) },
    ],
  });
}

/** The options that both charts of a target share. */
function chartOf(texts: ConsoleTexts, { choice, promotions, alarms }: AccuracyPage, { target, steps }: TargetSteps) {
  return {
    moments: steps.map(({ startMs }) => startMs),
    unit: ' %',
    formatMoment: choice.window === '12h' ? texts.format.clock : texts.format.day,
    marks: [
      ...promotions.flatMap((item) => markPromotion(texts, item)),
      ...alarms.filter((alarm) => alarm.target === target).map((item) => markAlarm(texts, item)),
    ],
  };
}

function markPromotion(texts: ConsoleTexts, { version, atMs, undoneAtMs }: PromotionView): Mark[] {
  const t = texts.accuracy;
  const mark = { kind: 'promotion', label: t.promotion };
  return [
    { ...mark, atMs, title: t.promoted(version) },
    ...(undoneAtMs === null ? [] : [{ ...mark, atMs: undoneAtMs, title: t.rolledBack(version) }]),
  ];
}

/** Alarms are counted by the hour, so the mark is at the start of the hour. */
function markAlarm(texts: ConsoleTexts, { startMs, target, cause, count }: DriftAlarmHour): Mark {
  return {
    kind: 'alarm',
    label: texts.accuracy.alarm,
    atMs: startMs,
    title: texts.accuracy.alarms(target.toUpperCase(), cause, count),
  };
}

function summarize(
  texts: ConsoleTexts,
  steps: readonly AccuracyStep[],
  {
    read,
    format,
  }: { readonly read: (step: AccuracyStep) => number | null; readonly format: (value: number) => string },
): string {
  const mean = averageRows(steps.map((step) => ({ rows: step.rows, value: read(step) })));
  const newest = steps.findLast((step) => read(step) !== null);
  if (mean === null || newest === undefined) return texts.accuracy.noReports;
  const rows = steps.reduce((sum, step) => sum + step.rows, 0);
  return texts.accuracy.summary(format(mean), format(read(newest)!), rows);
}

function renderValues(texts: ConsoleTexts, name: string, steps: readonly AccuracyStep[]): Html {
  const t = texts.accuracy;
  const rows = steps
    .filter((step) => step.rows > 0)
    .toReversed()
    .map((step) => [
      renderMoment(texts, step.startMs),
      step.versions.map((version) => nameVersion(texts, version)).join(', '),
      formatPercent(texts, step.mape),
      formatPercent(texts, step.heldOutMape),
      step.p90Coverage === null ? '–' : texts.format.percent(step.p90Coverage),
      texts.format.count(step.rows),
    ]);
  const columns = [t.when, t.version, 'MAPE %', `${t.heldOut} %`, texts.models.coverage, t.rows];
  return renderTable(texts, { label: t.values(name), columns, rows, textColumns: 2 });
}

function nameVersion(texts: ConsoleTexts, version: number): string {
  if (version === 0) return texts.accuracy.prior;
  return version < 0 ? '–' : String(version);
}

function formatPercent(texts: ConsoleTexts, value: number | null): string {
  return value === null ? '–' : texts.format.number(value);
}

const LISTED_EVENTS = 100;

/** Renders the events, newest first. */
function renderEvents(texts: ConsoleTexts, { promotions, alarms, fromMs }: AccuracyPage): Html {
  const t = texts.accuracy;
  const events = [
    ...promotions.flatMap((item) => markPromotion(texts, item)),
    ...alarms.map((item) => markAlarm(texts, item)),
  ]
    .filter(({ atMs }) => atMs >= fromMs)
    .sort((a, b) => b.atMs - a.atMs);
  const rows = events.slice(0, LISTED_EVENTS).map(({ atMs, title }) => [renderMoment(texts, atMs), title]);
  return html`<section class="card stack" aria-labelledby="events"><h2 id="events">${t.events}</h2>
${events.length === 0 ? html`<p class="empty">${t.noEvents}</p>` : html`<div class="narrow">${renderTable(texts, { label: t.events, columns: [t.when, t.what], rows, textColumns: 2 })}</div>`}
${events.length > rows.length ? html`<p class="soft">${t.moreEvents(events.length - rows.length)}</p>` : ''}</section>`;
}
