/** Serves what-if predictions: a form for a request and a load, whose answer can be linked. */
import { html } from 'hono/html';
import { type Mistake, renderField, renderHidden, renderMistake } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { toMistake } from '../../pages/page-routes.ts';
import { renderCrumbs, type SignedInPages, showView } from '../frame/console.ts';
import { renderTable } from '../frame/table.ts';

import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import { nameInput, namePart } from './model-charts.ts';
import { pathOfModel } from './model-pages.ts';
import type { ModelAdmin } from './model-views.ts';
import type { WhatIf, WhatIfAnswer, WhatIfField, WhatIfTarget } from './what-if-views.ts';

interface WhatIfPage {
  readonly name: string;
  readonly fields: readonly WhatIfField[];
  /** The servers that reported in the last 24 hours. */
  readonly servers: readonly string[];
  /** The texts by the names of their fields. */
  readonly values: Readonly<Record<string, string>>;
  readonly result: WhatIfResult;
}

interface WhatIfResult {
  readonly answer?: WhatIfAnswer;
  readonly mistake?: Mistake;
}

export function addWhatIfRoutes(page: SignedInPages['page'], { readModel, whatIf }: ModelAdmin): void {
  page('/models/what-if', async (request) => {
    const texts = readTexts(request.c);
    const { name = '', ...values } = request.c.req.query();
    const servers = (await readModel(name)).servers.map(({ server }) => server);
    const result = predict(texts, whatIf, { name, values });
    const content = renderWhatIf(texts, { name, fields: whatIf.fields, servers, values, result });
    return showView(request, { title: texts.whatIf.title, here: '/models', content, mistake: result.mistake });
  });
}

/** Predicts for the fields of the form. Without any field, only the form is shown. */
function predict(
  texts: ConsoleTexts,
  whatIf: WhatIf,
  { name, values }: Pick<WhatIfPage, 'name' | 'values'>,
): WhatIfResult {
  if (!whatIf.fields.some((field) => values[field.name] !== undefined)) return {};
  try {
    return { answer: whatIf.predict(name, values) };
  } catch (error) {
    return { mistake: toMistake(texts, error) };
  }
}

function renderWhatIf(texts: ConsoleTexts, page: WhatIfPage): Html {
  const t = texts.whatIf;
  const { name, fields, servers, values } = page;
  const { answer, mistake } = page.result;
  const labels = Object.fromEntries(
    fields.map((field) => [field.name, `${nameInput(texts, field.name)} (${field.name})`]),
  );
  const inputs = fields.map((field) =>
    renderField({
      name: field.name,
      label: labels[field.name] ?? field.name,
      hint: field.name === 'server_ip' ? nameServers(texts, field, servers) : describeField(texts, field),
      value: values[field.name] ?? '',
      isOptional: true,
      mistake,
    }),
  );
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${name}</strong></p><p class="soft">${t.lead}</p></div>
${renderMistake(texts, mistake, labels)}${answer === undefined ? '' : html`${warnOfPercents(texts, page)}${renderAnswer(texts, answer)}`}
<form method="get" action="/models/what-if" class="card stack">${renderHidden({ name })}${inputs}<p><button>${t.submit}</button></p></form>`;
}

function describeField(texts: ConsoleTexts, { name, meaning: english, kind }: WhatIfField): string {
  const t = texts.whatIf;
  const range = { int32: t.count, double: t.share, string: t.text }[kind];
  const meaning = t.meaning(name, english.replaceAll('`', ''));
  return t.hint(`${meaning[0]?.toUpperCase()}${meaning.slice(1)}`, range);
}

/** The service uses a share above 1 unchanged. A person who entered one most likely meant percent. */
function warnOfPercents(texts: ConsoleTexts, { fields, values }: WhatIfPage): Html | '' {
  const large = fields.filter(({ name, kind }) => kind === 'double' && Number(values[name]) > 1);
  if (large.length === 0) return '';
  const names = large.map(({ name }) => nameInput(texts, name)).join(', ');
  return html`<p class="notice warn">${texts.whatIf.aboveOne(names)}</p>`;
}

const NAMED_SERVERS = 8;

function nameServers(texts: ConsoleTexts, field: WhatIfField, servers: readonly string[]): string {
  const names = servers.filter((server) => server !== '').slice(0, NAMED_SERVERS);
  const hint = describeField(texts, field);
  return names.length === 0 ? hint : `${hint} ${texts.whatIf.servers(names.join(', '))}`;
}

function renderAnswer(texts: ConsoleTexts, { modelVersion, statistic, targets }: WhatIfAnswer): Html {
  return html`<section class="card stack" aria-labelledby="answer"><h2 id="answer">${texts.whatIf.answer(modelVersion || texts.whatIf.prior)}</h2>
<div class="charts">${targets.map((target) => renderTarget(texts, target, statistic))}</div><p class="small soft">${texts.whatIf.parts}</p></section>`;
}

function renderTarget(texts: ConsoleTexts, target: WhatIfTarget, statistic: string): Html {
  const t = texts.whatIf;
  const name = target.target.toUpperCase();
  const statistics = renderTable(texts, {
    label: t.statistics(name),
    columns: [t.statistic, t.milliseconds],
    textColumns: 1,
    rows: target.statistics.map(({ name: label, ms }) => [t.statisticNames[label] ?? label, texts.format.number(ms)]),
  });
  const parts = renderTable(texts, {
    label: t.madeOf(name),
    columns: [t.part, t.effect],
    textColumns: 1,
    rows: listParts(texts, target),
  });
  return html`<div class="chart stack"><h3>${t.predicted(name, texts.format.number(target.answerMs), t.statisticNames[statistic] ?? statistic)}</h3>${statistics}<p class="label">${t.madeOf(name)}</p>${parts}</div>`;
}

/** Lists the parts in the order in which they are calculated. */
function listParts(texts: ConsoleTexts, { answerMs, explainedMs, explanation }: WhatIfTarget): [string, string][] {
  const t = texts.whatIf;
  const { physics, treeFactors, treeMilliseconds = {}, serverFactor } = explanation;
  const add = ([name, ms]: [string, number]): [string, string] => [
    namePart(texts, name),
    `${ms < 0 ? '−' : '+'} ${texts.format.number(Math.abs(ms))} ms`,
  ];
  const multiply = ([name, factor]: [string, number]): [string, string] => [
    namePart(texts, name),
    `× ${formatFactor(factor)}`,
  ];
  return [
    ...Object.entries(physics).map(add),
    ...Object.entries(treeFactors).map(multiply),
    ...(serverFactor === 1 ? [] : [multiply([t.server, serverFactor])]),
    ...Object.entries(treeMilliseconds).map(add),
    ...(explainedMs > 0 ? [multiply([t.since, answerMs / explainedMs])] : []),
    [t.result, `= ${texts.format.number(answerMs)} ms`],
  ];
}

function formatFactor(factor: number): string {
  return factor.toFixed(3);
}
