/** Serves the page of predicted and observed times of a model, and its errors by load. */
import { html } from 'hono/html';
import { renderHidden, renderSelect } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs, type SignedInPages, showView } from '../frame/console.ts';
import { renderTable } from '../frame/table.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import {
  AGGREGATE,
  type ErrorChoice,
  isWindowName,
  pathOfErrors,
  WINDOWS,
  type WindowName,
} from './accuracy-choice.ts';
import type { AccuracyDependencies } from './accuracy-routes.ts';
import type { ErrorAxis, ErrorPart, ErrorsByLoad, TargetName } from './accuracy-views.ts';
import { formatError, renderAgainst, renderBar } from './error-charts.ts';
import { summarizeRanges } from './error-ranges.ts';
import { nameInput, nameRange } from './model-charts.ts';
import { pathOfModel } from './model-pages.ts';

const TARGETS: readonly TargetName[] = ['ttft', 'tpot'];
const AXES: readonly ErrorAxis[] = [
  'predicted_ms',
  'num_request_waiting',
  'num_request_running',
  'kv_cache_usage',
  'prefix_cache_score',
  'input_token_length',
];

type ErrorsByAxis = readonly (readonly [axis: ErrorAxis, errors: ErrorsByLoad])[];

export function addErrorRoutes(page: SignedInPages['page'], { admin, world }: AccuracyDependencies): void {
  page('/models/errors', async (request) => {
    const texts = readTexts(request.c);
    const choice = readChoice(request.c.req.query());
    await admin.readModel(choice.name);
    const query = {
      targetModel: choice.name,
      target: choice.target,
      fromMs: world.nowMs() - WINDOWS[choice.window].lengthMs,
    };
    const part = findPart(choice);
    const [parts, ...errors] = await Promise.all([
      admin.charts.listErrorParts(query),
      ...(part?.kind === 'server' ? AXES.slice(0, 1) : AXES).map(
        async (axis) => [axis, await admin.charts.readErrorsByLoad({ ...query, axis, part })] as const,
      ),
    ]);
    return showView(request, {
      title: texts.errors.title,
      here: '/models',
      content: renderErrors(texts, { choice, parts, errors }),
    });
  });
}

/** Uses the default for an unknown window or target. */
function readChoice({ name = '', window, target, ...of }: Readonly<Record<string, string>>): ErrorChoice {
  return {
    name,
    window: isWindowName(window) ? window : '7d',
    target: target === 'tpot' ? 'tpot' : 'ttft',
    podType: of.pod_type || undefined,
    server: of.server || undefined,
  };
}

function findPart({ podType, server }: ErrorChoice): ErrorPart | undefined {
  if (server !== undefined) return { kind: 'server', part: server };
  if (podType === undefined) return undefined;
  return { kind: 'pod type', part: podType === AGGREGATE ? '' : podType };
}

interface ErrorPage {
  readonly choice: ErrorChoice;
  /** The pod types and servers that can be chosen. */
  readonly parts: readonly ErrorPart[];
  readonly errors: ErrorsByAxis;
}

function renderErrors(texts: ConsoleTexts, { choice, parts, errors }: ErrorPage): Html {
  const t = texts.errors;
  const { name, target, server, podType } = choice;
  const [predicted, ...loads] = errors;
  const part = server ?? podType;
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${name}</strong>${part === undefined ? '' : html` · <span class="url">${part}</span>`}</p><p class="soft">${t.lead}</p></div>
${renderChoices(texts, choice, parts)}
${predicted === undefined || predicted[1].counts.length === 0 ? html`<p class="empty">${t.none}</p>` : renderFigures(texts, target.toUpperCase(), [predicted, ...loads])}`;
}

function renderChoices(texts: ConsoleTexts, choice: ErrorChoice, parts: readonly ErrorPart[]): Html {
  const t = texts.errors;
  const { window, target, podType, server } = choice;
  const windows = Object.entries(texts.accuracy.windows).map(([key, label]) =>
    renderChoice(label, { ...choice, window: key as WindowName }, key === window),
  );
  const targets = TARGETS.map((one) => renderChoice(one.toUpperCase(), { ...choice, target: one }, one === target));
  const podTypes = parts.filter(({ kind }) => kind === 'pod type').map(({ part }) => part || AGGREGATE);
  const ofAll = { ...choice, podType: undefined, server: undefined };
  const ofPodTypes = [
    renderChoice(t.all, ofAll, podType === undefined && server === undefined),
    ...podTypes.map((one) => renderChoice(one, { ...ofAll, podType: one }, one === podType && server === undefined)),
  ];
  const servers = parts.filter(({ kind }) => kind === 'server').map(({ part }) => part);
  return html`<section class="card stack"><nav aria-label="${texts.accuracy.window}"><p class="label">${texts.accuracy.window}</p><ul class="choices">${windows}</ul></nav>
<nav aria-label="${t.target}"><p class="label">${t.target}</p><ul class="choices">${targets}</ul></nav>
<nav aria-label="${texts.accuracy.podTypes}"><p class="label">${texts.accuracy.podTypes}</p><ul class="choices">${ofPodTypes}</ul></nav>
${servers.length === 0 ? '' : renderServerForm(texts, choice, servers)}</section>`;
}

function renderChoice(label: string, choice: ErrorChoice, isCurrent: boolean): Html {
  return html`<li><a class="url" href="${pathOfErrors(choice)}"${isCurrent ? html` aria-current="true"` : ''}>${label}</a></li>`;
}

function renderServerForm(texts: ConsoleTexts, choice: ErrorChoice, servers: readonly string[]): Html {
  const t = texts.accuracy;
  const { name, window, target, server = '' } = choice;
  const choices = [{ value: '', label: t.allServers }, ...servers.map((value) => ({ value, label: value }))];
  return html`<form method="get" action="/models/errors" class="filter">${renderHidden({ name, window, target })}
${renderSelect({ name: 'server', label: t.server, choices, value: server })}<button class="plain quiet">${t.showServer}</button></form>`;
}

function renderFigures(
  texts: ConsoleTexts,
  target: string,
  [predicted, ...loads]: readonly [ErrorsByAxis[number], ...ErrorsByAxis],
): Html {
  const t = texts.errors;
  return html`<section class="card stack" aria-label="${t.against(target)}">${renderAgainst(texts, target, predicted[1])}
<details><summary>${t.byPredicted}</summary>${renderRanges(texts, predicted)}</details></section>
${loads.length === 0 ? '' : renderLoads(texts, loads)}`;
}

function renderLoads(texts: ConsoleTexts, loads: ErrorsByAxis): Html {
  const t = texts.errors;
  return html`<section class="card stack" aria-labelledby="by-load"><h2 id="by-load">${t.byLoad}</h2><p class="soft">${t.byLoadLead}</p>
${loads.map((load) => html`<div class="stack"><h3>${nameInput(texts, load[0])}</h3>${renderRanges(texts, load)}</div>`)}</section>`;
}

function renderRanges(texts: ConsoleTexts, [axis, errors]: ErrorsByAxis[number]): Html {
  const t = texts.errors;
  return renderTable(texts, {
    label: axis === 'predicted_ms' ? t.predicted : nameInput(texts, axis),
    columns: [t.range, t.picture, t.median, t.middle, t.rows],
    textColumns: 2,
    rows: summarizeRanges(errors).map((range) => [
      nameRange(texts, errors.edges, range.range),
      renderBar(range),
      formatError(texts, range.median),
      `${formatError(texts, range.p10)} – ${formatError(texts, range.p90)}`,
      texts.format.count(range.rows),
    ]),
  });
}
