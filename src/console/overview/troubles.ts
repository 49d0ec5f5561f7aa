/** Decides what needs attention on the overview, and links each trouble to its cause. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import { pathOfModel } from '../models/model-pages.ts';
import type { ModelHealth, ModelHealthView } from '../models/model-views.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { RepositoryName, TroubledHookView, WebhookOverview } from '../webhooks/hook-views.ts';
import { pathOfRepository } from '../webhooks/repository-pages.ts';

/** A live error needs attention if it is this many times the held-out one and this many percentage points above it, over this many reports. */
const WORSE_FACTOR = 1.5;
const WORSE_POINTS = 2;
const WORSE_ROWS = 100;

interface Trouble {
  readonly path: string;
  readonly name: string;
  readonly tag: string;
  readonly shade: 'bad' | 'warn';
  readonly details: readonly string[];
  /** The advice on what to do about it. */
  readonly advice: string;
}

export interface Troubles {
  readonly list: readonly Trouble[];
  readonly moreHooks: number;
  /** Whether the counts cover the whole service, for which no page lists the webhooks. */
  readonly ofAll: boolean;
}

export function pathOfHookId({ ownerLogin, path }: RepositoryName, id: number): string {
  return `${pathOfRepository({ owner: { login: ownerLogin }, path })}/${id}`;
}

export function listTroubles(
  texts: ConsoleTexts,
  webhooks: WebhookOverview | undefined,
  health: ModelHealth | undefined,
): Troubles {
  const ofHooks = webhooks?.troubled.map((hook) => describeHook(texts, hook, webhooks.nowMs)) ?? [];
  const ofModels = health?.models.flatMap((model) => describeModel(texts, model, health.nowMs)) ?? [];
  const total = (webhooks?.totals.failing ?? 0) + (webhooks?.totals.disabled ?? 0);
  return {
    list: [...ofHooks, ...ofModels],
    moreHooks: Math.max(0, total - ofHooks.length),
    ofAll: webhooks?.ofAll ?? false,
  };
}

function describeHook(texts: ConsoleTexts, hook: TroubledHookView, nowMs: number): Trouble {
  const t = texts.overview;
  const { repository, disabledAtMs, failingSinceMs, pausedUntilMs, pauseReason } = hook;
  const place = `${repository.ownerLogin}/${repository.path}`;
  const path = pathOfHookId(repository, hook.id);
  if (disabledAtMs !== null) {
    const details = [
      place,
      t.disabledFor(texts.format.duration(nowMs - disabledAtMs)),
      texts.explain(hook.disabledReason ?? ''),
    ];
    return { path, name: hook.url, tag: texts.hooks.states.disabled, shade: 'bad', details, advice: t.advice.disabled };
  }
  const pause =
    pausedUntilMs === null || pauseReason === null || pausedUntilMs - nowMs < 1000
      ? []
      : [t.pausedFor(texts.format.duration(pausedUntilMs - nowMs), texts.hooks.pausedReasons[pauseReason])];
  const details = [
    place,
    t.failingFor(texts.format.duration(nowMs - (failingSinceMs ?? nowMs)), hook.fails),
    describeAnswer(texts, hook),
  ];
  return {
    path,
    name: hook.url,
    tag: texts.hooks.states.failing,
    shade: 'warn',
    details: [...details, ...pause],
    advice: t.advice.failing,
  };
}

function describeAnswer(texts: ConsoleTexts, { result, resultCode }: TroubledHookView): string {
  if (resultCode > 0) return texts.overview.answered(resultCode);
  return result === null ? '' : texts.overview.noAnswer(texts.explain(result));
}

function describeModel(texts: ConsoleTexts, model: ModelHealthView, nowMs: number): Trouble[] {
  const t = texts.overview;
  const common = { path: pathOfModel(model.name), name: model.name, shade: 'warn' } as const;
  const worse = model.targets.flatMap(({ target, rows, liveMape, heldOutMape }) =>
    liveMape !== null && heldOutMape !== null && rows >= WORSE_ROWS && isWorse(liveMape, heldOutMape)
      ? [t.worseOf(target.toUpperCase(), texts.format.number(liveMape), texts.format.number(heldOutMape))]
      : [],
  );
  const drift = model.drift.map(({ target, cause, count, lastAtMs }) =>
    t.driftOf(target.toUpperCase(), cause, count, texts.format.duration(nowMs - lastAtMs)),
  );
  const shifts = model.shifts.map(({ server, target, factor }) =>
    t.shiftOf(server || t.shiftNoServer, target.toUpperCase(), factor.toFixed(2)),
  );
  return [
    { ...common, tag: t.worse, details: worse, advice: t.advice.worse },
    { ...common, tag: t.drift, details: drift, advice: t.advice.drift },
    { ...common, path: `${common.path}#servers`, tag: t.shifted, details: shifts, advice: t.advice.shifted },
  ].filter(({ details }) => details.length > 0);
}

function isWorse(live: number, heldOut: number): boolean {
  return live > WORSE_FACTOR * heldOut && live > heldOut + WORSE_POINTS;
}

export function renderTroubles(texts: ConsoleTexts, { list, moreHooks, ofAll }: Troubles, withModels: boolean): Html {
  const t = texts.overview;
  const entries = list.map(
    ({ path, name, tag, shade, details, advice }) =>
      html`<li class="tight"><p><a href="${path}"><strong class="url short">${name}</strong></a> <span class="tag ${shade}">${tag}</span></p><p class="small soft">${details.filter((detail) => detail !== '').join(' · ')}</p><p class="small">${advice}</p></li>`,
  );
  return html`<h2 id="trouble">${t.trouble}</h2>
${list.length === 0 ? html`<p class="notice">${withModels ? t.noTrouble : t.noTroubleOfHooks}</p>` : html`<ul class="list">${entries}</ul>`}
${moreHooks === 0 ? '' : html`<p class="soft">${ofAll ? t.moreTroubledOfAll(moreHooks) : html`<a href="/webhooks">${t.moreTroubled(moreHooks)}</a>`}</p>`}`;
}
