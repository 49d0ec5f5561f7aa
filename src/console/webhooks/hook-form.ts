/** Renders the form of a webhook and reads its fields, which are named as in the API. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCheck,
  renderCsrf,
  renderField,
  renderGroup,
  renderMistake,
  renderSelect,
} from '../../pages/elements.ts';
import { renderShown } from '../../pages/forms/form-change.ts';
import type { Html } from '../../pages/layout.ts';
import { readField } from '../../pages/page-routes.ts';
import { renderCrumbs } from '../frame/console.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { HookView, RepositoryView, Values } from './hook-views.ts';
import { pathOfRepository } from './repository-pages.ts';

/** The kinds of event, each with the parameter that subscribes a webhook to it. */
const FLAG_OF = {
  push: 'push_events',
  tag_push: 'tag_push_events',
  issue: 'issues_events',
  note: 'note_events',
  merge_request: 'merge_requests_events',
} as const;

type EventKind = keyof typeof FLAG_OF;
const EVENT_KINDS = Object.keys(FLAG_OF) as readonly EventKind[];

export function listKinds(hook: HookView): EventKind[] {
  return EVENT_KINDS.filter((kind) => hook[FLAG_OF[kind]]);
}

export function nameEvent(texts: ConsoleTexts, kind: string): string {
  const names: Readonly<Record<string, string>> = texts.hooks.kinds;
  return names[kind] ?? kind;
}

export interface HookValues {
  readonly url: string;
  readonly kinds: readonly EventKind[];
  /** 0: the key is sent in a header, 1: it signs the body. */
  readonly encryptionType: string;
  /** Undefined where the form has no such field. */
  readonly key: string | undefined;
  readonly profile: string;
}

export function blankHook(key: string): HookValues {
  return { url: '', kinds: ['push'], encryptionType: '1', key, profile: 'gitcode' };
}

export function valuesOfHook(hook: HookView): HookValues {
  const { url, encryption_type, profile } = hook;
  return { url, kinds: listKinds(hook), encryptionType: String(encryption_type), key: undefined, profile };
}

export function readHookValues(form: URLSearchParams): HookValues {
  return {
    url: readField(form, 'url').trim(),
    kinds: EVENT_KINDS.filter((kind) => form.has(FLAG_OF[kind])),
    encryptionType: readField(form, 'encryption_type'),
    key: form.get('password') ?? undefined,
    profile: readField(form, 'profile'),
  };
}

/** Leaves absent values out of the parameters. */
export function toParameters({ url, kinds, encryptionType, key, profile }: Partial<HookValues>): Values {
  const events = kinds && Object.fromEntries(EVENT_KINDS.map((kind) => [FLAG_OF[kind], kinds.includes(kind)]));
  const given = { url, encryption_type: encryptionType, password: key, profile, ...events };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

export interface HookFormView {
  readonly repository: RepositoryView;
  /** The id of the hook that the form changes. */
  readonly hookId?: number | undefined;
  /** The values of that hook as they are stored. */
  readonly stored?: HookValues | undefined;
  readonly values: HookValues;
  readonly profiles: readonly string[];
  readonly mistake?: Mistake | undefined;
  readonly csrfToken: string;
}

export function renderHookForm(texts: ConsoleTexts, view: HookFormView): Html {
  const t = texts.hooks;
  const { repository, hookId, values } = view;
  const mistake = findShownMistake(view);
  const base = pathOfRepository(repository);
  const isNew = hookId === undefined;
  const back = isNew ? base : `${base}/${hookId}`;
  const proofs = [
    { value: '1', label: t.signature, hint: t.signatureHint, isChosen: values.encryptionType === '1' },
    { value: '0', label: t.password, hint: t.passwordHint, isChosen: values.encryptionType !== '1' },
  ].map((proof) => renderCheck({ name: 'encryption_type', ...proof }, 'radio'));
  const crumbs = [
    { path: '/webhooks', label: texts.repositories.title },
    { path: base, label: repository.full_name },
    ...(isNew ? [] : [{ path: back, label: t.number(hookId) }]),
  ];
  return html`${renderCrumbs(texts, crumbs)}<h1>${isNew ? t.create : t.editTitle(hookId)}</h1>${renderMistake(texts, mistake, { url: t.url, password: t.key, profile: t.profile, encryption_type: t.proof })}
<form method="post" action="${isNew ? base : `${back}/change`}" class="card stack">${renderCsrf(view.csrfToken)}${view.stored === undefined ? '' : renderShown(view.stored)}
${renderField({ name: 'url', label: t.url, hint: t.urlHint, type: 'text', value: values.url, autocomplete: 'off', hasFocus: isNew && mistake === undefined, mistake })}
<fieldset><legend>${t.events}</legend>${EVENT_KINDS.map((kind) => renderCheck({ name: FLAG_OF[kind], value: '1', label: t.kinds[kind], hint: t.kindHints[kind], isChosen: values.kinds.includes(kind) }))}</fieldset>
${renderGroup({ name: 'encryption_type', label: t.proof, mistake }, proofs)}
${values.key === undefined ? '' : renderField({ name: 'password', label: t.key, hint: t.keyHint, value: values.key, autocomplete: 'off', isOptional: true, mistake })}
${renderSelect({ name: 'profile', label: t.profile, hint: t.profileHint, choices: view.profiles.map((name) => ({ value: name, label: nameProfile(name) })), value: values.profile, mistake })}
<div class="row"><button>${isNew ? t.submit : texts.save}</button><a href="${back}">${texts.cancel}</a></div></form>`;
}

/** The stored key may forbid a change, and this form does not show it: such a mistake is in none of its fields. */
function findShownMistake({ values, mistake }: HookFormView): Mistake | undefined {
  if (mistake?.field !== 'password' || values.key !== undefined) return mistake;
  return { message: mistake.message };
}

/** The code host of a profile, as the host writes its name. */
export function nameProfile(profile: string): string {
  return PROFILE_NAMES[profile] ?? profile;
}

const PROFILE_NAMES: Readonly<Record<string, string>> = {
  gitcode: 'GitCode',
  gitee: 'Gitee',
  github: 'GitHub',
  gitlab: 'GitLab',
};
