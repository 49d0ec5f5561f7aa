/** Serves the page of a model's capacity: a form whose fields are in the address. */
import { html } from 'hono/html';
import { type Mistake, renderField, renderHidden, renderMistake, renderMoment } from '../../pages/elements.ts';
import { nameByLabel } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import { readMistake, renderCrumbs, type SignedInPages, showView } from '../frame/console.ts';
import { renderCurve } from '../frame/curve-chart.ts';
import { renderTable } from '../frame/table.ts';
import { niceTop } from '../frame/time-chart.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import type { CapacityLimits, CapacityView, FoundCapacity } from './capacity-views.ts';
import { pathOfModel } from './model-pages.ts';
import type { ModelAdmin, ModelView } from './model-views.ts';

const FIELDS = ['ttft_ms', 'tpot_ms', 'quantile', 'prompt_tokens', 'output_tokens', 'servers', 'pod_type'] as const;
const TARGETS = ['ttft', 'tpot'] as const;
const DEFAULTS: Readonly<Record<string, string>> = { quantile: '0.9' };
const LISTED_SERVERS = 20;
/** The top of a chart, as a multiple of the limit. */
const DRAWN_LIMITS = 1.6;

interface CapacityResult {
  readonly answer?: CapacityView;
  readonly mistake?: Mistake;
}

interface CapacityPage {
  readonly model: ModelView;
  /** The values by the names of fields. */
  readonly values: Readonly<Record<string, string>>;
  readonly result: CapacityResult;
}

export function addCapacityRoutes(
  page: SignedInPages['page'],
  { readModel, findCapacity }: Pick<ModelAdmin, 'readModel' | 'findCapacity'>,
): void {
  page('/models/capacity', async (request) => {
    const texts = readTexts(request.c);
    const { name = '', ...values } = request.c.req.query();
    const model = await readModel(name);
    const result = await answerForm(texts, findCapacity, { model, values });
    const content = renderCapacity(texts, { model, values: { ...DEFAULTS, ...values }, result });
    return showView(request, { title: texts.whatIf.capacity.title, here: '/models', content, mistake: result.mistake });
  });
}

/** Computes the answer to the form; without any field or a served version there is no answer. */
async function answerForm(
  texts: ConsoleTexts,
  findCapacity: ModelAdmin['findCapacity'],
  { model, values }: Pick<CapacityPage, 'model' | 'values'>,
): Promise<CapacityResult> {
  const given = Object.fromEntries(
    FIELDS.flatMap((field) => (values[field] === undefined ? [] : [[field, values[field]]])),
  );
  if (model.servedVersion === undefined || Object.keys(given).length === 0) return {};
  try {
    return { answer: await findCapacity(model.name, given) };
  } catch (error) {
    const mistake = readMistake(texts, error);
    // A refusal may name several fields; it is also shown beside one of them.
    return { mistake: { ...mistake, message: nameByLabel(mistake.message, texts.whatIf.capacity.fields) } };
  }
}

function renderCapacity(texts: ConsoleTexts, { model, values, result: { answer, mistake } }: CapacityPage): Html {
  const t = texts.whatIf.capacity;
  const { name } = model;
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${name}</strong></p><p class="soft">${t.lead}</p></div>
${renderMistake(texts, mistake, t.fields)}${answer === undefined ? '' : renderAnswer(texts, answer)}
${model.servedVersion === undefined ? html`<p class="empty">${t.none}</p>` : renderForm(texts, { model, values, mistake })}`;
}

function renderForm(
  texts: ConsoleTexts,
  { model, values, mistake }: Pick<CapacityPage, 'model' | 'values'> & { readonly mistake: Mistake | undefined },
): Html {
  const t = texts.whatIf.capacity;
  const inputs = FIELDS.map((field) =>
    renderField({
      name: field,
      label: t.fields[field],
      hint: field === 'servers' ? describeServers(texts, model) : t.hints[field],
      value: values[field] ?? '',
      isOptional: true,
      mistake,
    }),
  );
  return html`<form method="get" action="/models/capacity" class="card stack">${renderHidden({ name: model.name })}${inputs}<p><button>${t.submit}</button></p><p class="small soft">${t.takes}</p></form>`;
}

function describeServers(texts: ConsoleTexts, { servers }: ModelView): string {
  const t = texts.whatIf.capacity;
  const names = servers.map(({ server }) => server).filter((server) => server !== '');
  if (names.length === 0) return t.hints.servers;
  return `${t.hints.servers} ${t.known(names.slice(0, LISTED_SERVERS).join(', '), names.length)}`;
}

function renderAnswer(texts: ConsoleTexts, view: CapacityView): Html {
  const t = texts.whatIf.capacity;
  const { capacity, lengths, foundAtMs, version } = view;
  const { count } = texts.format;
  const asked = t.asked(version, count(Math.round(lengths.promptTokens)), count(Math.round(lengths.outputTokens)));
  return html`<section class="card stack" aria-labelledby="answer"><h2 id="answer">${t.answer}</h2>
<p><strong>${capacity === undefined ? t.idle : describeCapacity(texts, view, capacity)}</strong></p>
<p class="small soft">${asked} · ${renderMoment(texts, foundAtMs)}</p>
${capacity === undefined ? '' : renderTargetCharts(texts, view, capacity)}</section>
${renderServers(texts, view)}`;
}

/** Writes one sentence with the rate and one with the reason. */
function describeCapacity(texts: ConsoleTexts, { limits }: CapacityView, capacity: FoundCapacity): string {
  const t = texts.whatIf.capacity;
  const { number } = texts.format;
  const { limitedBy, plateau } = capacity;
  const [rate, underWay] = [number(capacity.requestsPerSecond), number(capacity.concurrency)];
  if (limitedBy === 'observed load') return t.atLeast(rate, underWay);
  const limitMs = limitedBy === 'ttft' ? limits.ttftMs : limits.tpotMs;
  const broken = { what: nameQuantile(limits, limitedBy), limit: number(limitMs ?? 0) };
  if (plateau === undefined) return t.found(rate, underWay, broken);
  const { fromRequestsPerSecond: from, toRequestsPerSecond: to } = plateau;
  return t.plateau(rate, underWay, { ...broken, from: number(from), to: number(to) });
}

/** `p90 TTFT`. */
function nameQuantile({ quantile }: CapacityLimits, target: 'ttft' | 'tpot'): string {
  return `p${Number((100 * quantile).toFixed(2))} ${target.toUpperCase()}`;
}

function renderTargetCharts(texts: ConsoleTexts, view: CapacityView, capacity: FoundCapacity): Html {
  const t = texts.whatIf.capacity;
  const { number } = texts.format;
  const names = TARGETS.map((target) => nameQuantile(view.limits, target));
  const values = renderTable(texts, {
    label: t.values,
    columns: [t.rate, ...names.map((name) => `${name}, ms`)],
    textColumns: 0,
    rows: capacity.curve.map(({ requestsPerSecond, ttftMs, tpotMs, isExtrapolated }) => [
      isExtrapolated ? t.extrapolatedRate(number(requestsPerSecond)) : number(requestsPerSecond),
      number(ttftMs),
      tpotMs === undefined ? '–' : number(tpotMs),
    ]),
  });
  const shown = TARGETS.filter((target) => capacity.curve.some((point) => point[`${target}Ms`] !== undefined));
  return html`<div class="charts">${shown.map((target) => renderTargetChart(texts, view, { capacity, target }))}</div>
<details><summary>${t.values}</summary>${values}</details>`;
}

interface TargetChart {
  readonly capacity: FoundCapacity;
  readonly target: 'ttft' | 'tpot';
}

function renderTargetChart(texts: ConsoleTexts, { limits }: CapacityView, { capacity, target }: TargetChart): Html {
  const t = texts.whatIf.capacity;
  const { number } = texts.format;
  const { curve, requestsPerSecond } = capacity;
  const points = curve.flatMap((point) => {
    const y = point[`${target}Ms`];
    return y === undefined ? [] : [{ x: point.requestsPerSecond, y, isExtrapolated: point.isExtrapolated }];
  });
  const limit = limits[`${target}Ms`];
  const below = points.filter(({ x }) => x <= requestsPerSecond);
  const largest = Math.max(...below.map(({ y }) => y), limit ?? 0);
  const lastSeen = points.findLast(({ isExtrapolated }) => !isExtrapolated);
  const isContinued = points.some(({ isExtrapolated }) => isExtrapolated);
  const answer = { kind: 'promotion', label: t.answerAt(number(requestsPerSecond)), at: { x: requestsPerSecond } };
  return renderCurve(texts, {
    title: nameQuantile(limits, target),
    summary: `${t.summary(number(below.at(-1)?.y ?? 0), number(requestsPerSecond))}${isContinued ? t.summaryExtrapolated(number(lastSeen?.x ?? 0)) : ''}`,
    points,
    extrapolated: t.extrapolated,
    xUnit: t.perSecond,
    yUnit: ' ms',
    top: niceTop(DRAWN_LIMITS * largest),
    lines: [
      ...(limit === undefined ? [] : [{ kind: 'alarm', label: t.limitAt(number(limit)), at: { y: limit } }]),
      answer,
    ],
  });
}

function renderServers(texts: ConsoleTexts, { capacity, servers }: CapacityView): Html {
  const t = texts.whatIf.capacity;
  const { number, percent } = texts.format;
  const shares = new Map(capacity?.servers.map((server) => [server.name, server.requestsPerSecond]));
  const rows = servers.map(({ name, maximum, underWay }) => {
    const share = shares.get(name);
    return [
      name || texts.models.noServer,
      share === undefined ? '–' : number(share),
      number(maximum),
      underWay === undefined ? '–' : number(underWay),
      underWay === undefined ? '–' : formatRoom(texts, maximum - underWay),
      underWay === undefined ? '–' : `${percent((100 * underWay) / Math.max(1, maximum))} %`,
    ];
  });
  const columns = [texts.models.server, t.serverRate, t.maximum, t.underWay, t.room, t.used];
  return html`<section class="card stack" aria-labelledby="headroom"><h2 id="headroom">${t.headroom}</h2><p class="soft">${t.headroomLead}</p>
${renderTable(texts, { label: t.headroom, columns, rows, textColumns: 1 })}</section>`;
}

/** Formats the headroom. Below 0 the server exceeds the limits. */
function formatRoom(texts: ConsoleTexts, room: number): string {
  return room < 0 ? `−${texts.format.number(-room)}` : texts.format.number(room);
}
