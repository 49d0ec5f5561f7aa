/** Renders the list of people and the forms for new accounts. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderBadge,
  renderCheck,
  renderCsrf,
  renderDone,
  renderField,
  renderFilterFold,
  renderGroup,
  renderMistake,
  renderSelect,
} from '../../pages/elements.ts';
import type { Labels } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import type { PersonState, UserState } from '../administration/people-store.ts';
import type { Messages } from '../messages/messages.ts';

export const PEOPLE = '/admin/users';
/** Not under `PEOPLE`, where each login is a path. */
export const PEOPLE_EXPORT = '/admin/users-export';

export interface NewPersonValues {
  readonly login: string;
  readonly name: string;
  readonly email: string;
  /** How the person signs in for the first time. */
  readonly way: 'mail' | 'show' | 'password';
}

export interface PeopleView {
  readonly people: readonly UserState[];
  readonly filter: PeopleFilter;
  /** The URL of the next page. */
  readonly next: string | undefined;
  readonly csrfToken: string;
  readonly values: NewPersonValues;
  readonly mistake: Mistake | undefined;
  readonly done: string | undefined;
  readonly canMail: boolean;
}

export interface PeopleFilter {
  readonly q: string;
  readonly state: PersonState | undefined;
}

/** Formats the filter as a query string for the links of the page. */
export function formatFilter({ q, state }: PeopleFilter, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ ...(q === '' ? {} : { q }), ...(state === undefined ? {} : { state }), ...more });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

export function pathOfPerson(login: string): string {
  return `${PEOPLE}/${encodeURIComponent(login)}`;
}

export function renderPeople(messages: Messages, view: PeopleView): Html {
  const t = messages.users;
  const { people, next } = view;
  return html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(view.done)}${renderMistake(messages, view.mistake, labelsOf(messages))}
${renderFilterFold(messages, renderFilter(messages, view.filter), { isOpen: formatFilter(view.filter) !== '' })}
${people.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${people.map((user) => renderPerson(messages, user))}</ul>`}
${next === undefined ? '' : html`<p><a class="button plain" href="${next}">${t.more}</a></p>`}
<p class="small">${t.exportAs} <a href="${PEOPLE_EXPORT}${formatFilter(view.filter, { format: 'csv' })}">CSV</a>, <a href="${PEOPLE_EXPORT}${formatFilter(view.filter, { format: 'jsonl' })}">JSON lines</a></p>
${renderNewPerson(messages, view)}${view.canMail ? renderTestMail(messages, view) : ''}`;
}

function labelsOf({ setup, users: t }: Messages): Labels {
  return { login: setup.login, name: setup.name, email: setup.email, way: t.way, password: t.password };
}

function renderFilter(messages: Messages, { q, state }: PeopleFilter): Html {
  const t = messages.users;
  const choices = Object.entries(t.filters).map(([value, label]) => ({ value, label }));
  return html`<form method="get" class="card stack"><div class="pair fields">
${renderField({ name: 'q', label: t.search, hint: t.searchHint, value: q, autocomplete: 'off', isOptional: true })}
${renderSelect({ name: 'state', label: t.filter, choices, value: state ?? '' })}
</div><button class="plain">${t.find}</button></form>`;
}

function renderPerson(messages: Messages, user: UserState): Html {
  const t = messages.users;
  const isDisabled = user.disabledAtMs !== null;
  return html`<li class="item"><div class="row">${renderBadge(user.name)}<div class="tight">
<p><a href="${pathOfPerson(user.login)}"><strong>${user.login}</strong></a> ${user.isAdmin ? html`<span class="tag good">${t.admin}</span>` : ''}${isDisabled ? html`<span class="tag bad">${t.disabled}</span>` : user.isInvited ? html`<span class="tag">${t.invited}</span>` : ''}</p>
<p class="small soft">${user.name}${user.email ? ` · ${user.email}` : ''} · ${messages.format.date(user.createdAtMs)}</p></div></div></li>`;
}

function renderNewPerson(messages: Messages, view: PeopleView): Html {
  const { setup } = messages;
  const t = messages.users;
  const { values, mistake, canMail } = view;
  const offered = canMail ? (['mail', 'show', 'password'] as const) : (['show', 'password'] as const);
  const ways = offered.map((way) => renderWay(messages, way, view));
  return html`<section class="card stack" aria-labelledby="new"><h2 id="new">${t.create}</h2>
<form method="post" action="${PEOPLE}" class="stack">${renderCsrf(view.csrfToken)}
${renderField({ name: 'login', label: setup.login, hint: setup.loginHint, value: values.login, autocomplete: 'off', mistake })}
${renderField({ name: 'name', label: setup.name, value: values.name, autocomplete: 'off', mistake })}
${renderField({ name: 'email', label: `${setup.email} (${setup.optional})`, hint: t.emailHint, type: 'email', value: values.email, autocomplete: 'off', isOptional: true, mistake })}
${renderGroup({ name: 'way', label: t.way, mistake }, ways)}
${renderField({ name: 'password', label: t.password, hint: setup.passwordHint, type: 'password', autocomplete: 'new-password', isOptional: true, mistake })}
<button>${t.submit}</button></form></section>`;
}

function renderWay(messages: Messages, value: NewPersonValues['way'], { values }: PeopleView): Html {
  const { label, hint } = messages.users.ways[value];
  return renderCheck({ name: 'way', value, label, hint, isChosen: values.way === value }, 'radio');
}

function renderTestMail(messages: Messages, { csrfToken }: PeopleView): Html {
  return html`<form method="post" action="${PEOPLE}/test-mail">${renderCsrf(csrfToken)}<button class="plain quiet">${messages.users.testMail}</button></form>`;
}
