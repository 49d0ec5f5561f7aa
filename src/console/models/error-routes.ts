/** The page of predicted and observed times of a model, and its errors by load. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs, type SignedInPages, showView } from '../frame/console.ts';
import { renderTable } from '../frame/table.ts';
import { errorTexts } from '../texts/error-texts.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import { isWindowName, pathOfErrors, WINDOWS, type WindowName } from './accuracy-choice.ts';
import type { AccuracyDependencies } from './accuracy-routes.ts';
import type { ErrorAxis, ErrorsByLoad, TargetName } from './accuracy-views.ts';
import { formatError, renderAgainst, renderBar } from './error-charts.ts';
import { summarizeRanges } from './error-ranges.ts';
import { nameRange } from './model-charts.ts';
import { pathOfModel } from './model-pages.ts';

const TARGETS: readonly TargetName[] = ['ttft', 'tpot'];
const AXES = Object.keys(errorTexts.fields) as ErrorAxis[];

interface ErrorChoice {
  readonly name: string;
  readonly window: WindowName;
  readonly target: TargetName;
}

type ErrorsByAxis = readonly (readonly [axis: ErrorAxis, errors: ErrorsByLoad])[];

export function addErrorRoutes(page: SignedInPages['page'], { admin, world }: AccuracyDependencies): void {
  page('/models/errors', async (request) => {
    const texts = readTexts(request.c);
    const { window, target, name = '' } = request.c.req.query();
    const choice: ErrorChoice = {
      name,
      window: isWindowName(window) ? window : '7d',
      target: target === 'tpot' ? 'tpot' : 'ttft',
    };
    await admin.readModel(name);
    const fromMs = world.nowMs() - WINDOWS[choice.window].lengthMs;
    const errors = await Promise.all(
      AXES.map(async (axis) => {
        const query = { targetModel: name, target: choice.target, axis, fromMs };
        return [axis, await admin.pictures.readErrorsByLoad(query)] as const;
      }),
    );
    return showView(request, {
      title: texts.errors.title,
      here: '/models',
      content: renderErrors(texts, choice, errors),
    });
  });
}

function renderErrors(texts: ConsoleTexts, choice: ErrorChoice, [predicted, ...loads]: ErrorsByAxis): Html {
  const t = texts.errors;
  const { name, window, target } = choice;
  const links = (choices: readonly { readonly label: string; readonly path: string; readonly isCurrent: boolean }[]) =>
    html`<ul class="choices">${choices.map(({ label, path, isCurrent }) => html`<li><a href="${path}"${isCurrent ? html` aria-current="true"` : ''}>${label}</a></li>`)}</ul>`;
  const windows = Object.entries(texts.accuracy.windows).map(([key, label]) => {
    return { label, path: pathOfErrors(name, key as WindowName, target), isCurrent: key === window };
  });
  const targets = TARGETS.map((one) => {
    return { label: one.toUpperCase(), path: pathOfErrors(name, window, one), isCurrent: one === target };
  });
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${name}</strong></p><p class="soft">${t.lead}</p></div>
<section class="card stack"><nav aria-label="${texts.accuracy.window}"><p class="label">${texts.accuracy.window}</p>${links(windows)}</nav>
<nav aria-label="${t.target}"><p class="label">${t.target}</p>${links(targets)}</nav></section>
${predicted === undefined || predicted[1].counts.length === 0 ? html`<p class="empty">${t.none}</p>` : renderFigures(texts, target.toUpperCase(), [predicted, ...loads])}`;
}

function renderFigures(
  texts: ConsoleTexts,
  target: string,
  [predicted, ...loads]: readonly [ErrorsByAxis[number], ...ErrorsByAxis],
): Html {
  const t = texts.errors;
  return html`<section class="card stack" aria-label="${t.against(target)}">${renderAgainst(texts, target, predicted[1])}
<details><summary>${t.byPredicted}</summary>${renderRanges(texts, predicted)}</details></section>
<section class="card stack" aria-labelledby="by-load"><h2 id="by-load">${t.byLoad}</h2><p class="soft">${t.byLoadLead}</p>
${loads.map((load) => html`<div class="stack"><h3>${t.fields[load[0]]}</h3>${renderRanges(texts, load)}</div>`)}</section>`;
}

function renderRanges(texts: ConsoleTexts, [axis, errors]: ErrorsByAxis[number]): Html {
  const t = texts.errors;
  return renderTable(texts, {
    label: t.fields[axis],
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
