/** Serves the page of input effects: which inputs matter most, and how each changes the prediction. */
import { html } from 'hono/html';
import { renderMoment } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs, type SignedInPages, showView } from '../frame/console.ts';
import { renderCurve } from '../frame/curve-chart.ts';
import { renderTable } from '../frame/table.ts';
import { type ConsoleTexts, readTexts } from '../texts/texts.ts';
import type { EffectsView, PriceView, TargetEffectsView } from './effect-views.ts';
import { nameInput } from './model-charts.ts';
import { pathOfModel } from './model-pages.ts';
import type { ModelAdmin } from './model-views.ts';

export function addEffectRoutes(page: SignedInPages['page'], { readModel, readEffects }: ModelAdmin): void {
  page('/models/effects', async (request) => {
    const { name = '' } = request.c.req.query();
    await readModel(name);
    const texts = readTexts(request.c);
    const content = renderEffects(texts, name, await readEffects(name));
    return showView(request, { title: texts.whatIf.effects.title, here: '/models', content });
  });
}

function renderEffects(texts: ConsoleTexts, name: string, effects: EffectsView | undefined): Html {
  const t = texts.whatIf.effects;
  return html`${renderCrumbs(texts, [
    { path: '/models', label: texts.models.title },
    { path: pathOfModel(name), label: name },
  ])}
<div class="tight"><h1>${t.title}</h1><p class="soft"><strong class="url">${name}</strong></p><p class="soft">${t.lead}</p></div>
${effects === undefined ? html`<p class="empty">${t.none}</p>` : renderMeasured(texts, name, effects)}`;
}

function renderMeasured(texts: ConsoleTexts, name: string, { version, rows, madeAtMs, targets }: EffectsView): Html {
  return html`<p class="small soft">${texts.whatIf.effects.measured(`${name}@${version}`, rows)} · ${renderMoment(texts, madeAtMs)}</p>
${targets.map((target) => renderTarget(texts, target))}`;
}

function renderTarget(texts: ConsoleTexts, effects: TargetEffectsView): Html {
  const t = texts.whatIf.effects;
  const target = effects.target.toUpperCase();
  const id = `matters-${effects.target}`;
  return html`<section class="card stack" aria-labelledby="${id}"><h2 id="${id}">${t.matters(target)}</h2>
<p class="soft">${t.mattersLead(texts.format.number(effects.mape))}</p>${renderImportance(texts, effects, t.matters(target))}</section>
<section class="card stack" aria-label="${t.prices(target)}"><h2>${t.prices(target)}</h2><p class="soft">${t.pricesLead}</p>
<div class="charts">${effects.prices.map((price) => renderPrice(texts, target, price))}</div></section>`;
}

function renderImportance(texts: ConsoleTexts, { importance }: TargetEffectsView, label: string): Html {
  const t = texts.whatIf.effects;
  const most = Math.max(...importance.map(({ mapeAdded }) => mapeAdded), 1e-9);
  return renderTable(texts, {
    label,
    columns: [t.input, t.picture, t.added],
    textColumns: 2,
    rows: importance.map(({ field, mapeAdded }) => [
      nameInput(texts, field),
      renderShare(Math.max(0, mapeAdded) / most),
      t.points(texts.format.number(Math.max(0, mapeAdded))),
    ]),
  });
}

function renderShare(share: number): Html {
  return html`<svg class="ratio" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true"><rect class="rest" width="100" height="12"/><rect class="up" y="2" width="${round(100 * share)}" height="8"/></svg>`;
}

/** Renders the price of an input over the range of values that most samples have. */
function renderPrice(texts: ConsoleTexts, target: string, { field, points }: PriceView): Html {
  const { number } = texts.format;
  const [first, last] = [points[0]!, points.at(-1)!];
  return renderCurve(texts, {
    title: nameInput(texts, field),
    group: target,
    summary: texts.whatIf.effects.price(number(first.ms), number(first.value), {
      ms: number(last.ms),
      value: number(last.value),
    }),
    points: points.map(({ value, ms }) => ({ x: value, y: ms })),
    yUnit: ' ms',
  });
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
