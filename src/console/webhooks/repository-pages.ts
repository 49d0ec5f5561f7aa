/** Renders the pages of owners and their repositories. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCheck,
  renderCsrf,
  renderField,
  renderMistake,
  renderSelect,
} from '../../pages/elements.ts';
import { nameByLabel } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import { renderCrumbs } from '../frame/console.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { OwnerView, RepositoryView } from './hook-views.ts';

export function pathOfRepository({ owner, path }: Pick<RepositoryView, 'owner' | 'path'>): string {
  return `/webhooks/${encodeURIComponent(owner.login)}/${encodeURIComponent(path)}`;
}

export interface OwnersView {
  readonly owners: readonly OwnerView[];
  readonly page: number;
  /** Whether the page shows only this owner, with page numbers. */
  readonly isAlone: boolean;
}

export function renderOwners(texts: ConsoleTexts, view: OwnersView): Html {
  const t = texts.repositories;
  const isEmpty = view.owners.every((owner) => owner.total === 0);
  return html`<div class="row spread"><div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div><a class="button" href="/webhooks/new">${t.create}</a></div>
${isEmpty ? html`<p class="empty">${t.none}</p>` : view.owners.map((owner) => renderOwner(texts, owner, view))}`;
}

function renderOwner(texts: ConsoleTexts, owner: OwnerView, view: OwnersView): Html {
  const { login, name, repositories } = owner;
  const id = `owner-${login}`;
  return html`<section class="stack" aria-labelledby="${id}"><h2 id="${id}">${login}${name === login ? '' : html` <span class="soft">${name}</span>`}</h2>
${repositories.length === 0 ? html`<p class="empty">${texts.repositories.noneOfOwner}</p>` : html`<ul class="list">${repositories.map((repository) => renderRepository(texts, repository))}</ul>`}
${owner.pages === 1 ? '' : renderPages(texts, owner, view)}</section>`;
}

function renderRepository(texts: ConsoleTexts, repository: OwnerView['repositories'][number]): Html {
  const t = texts.repositories;
  const { hooks, failing, disabled, switchedOff } = repository.counts;
  return html`<li class="item"><div class="tight"><p><a href="${pathOfRepository(repository)}"><strong>${repository.path}</strong></a> ${repository.private ? html`<span class="tag">${t.private}</span>` : ''}</p>
${repository.description ? html`<p class="small soft">${repository.description}</p>` : ''}</div>
<div class="tags"><span class="small soft">${t.hooks(hooks)}</span>${failing === 0 ? '' : html` <span class="tag warn">${t.failing(failing)}</span>`}${disabled === 0 ? '' : html` <span class="tag bad">${t.disabled(disabled)}</span>`}${switchedOff === 0 ? '' : html` <span class="tag">${t.switchedOff(switchedOff)}</span>`}</div></li>`;
}

function renderPages(texts: ConsoleTexts, { login, total, pages }: OwnerView, { page, isAlone }: OwnersView): Html {
  const t = texts.repositories;
  const link = (number: number, label: string) =>
    html`<a class="button plain quiet" href="/webhooks?owner=${encodeURIComponent(login)}&amp;page=${number}">${label}</a>`;
  if (!isAlone) return html`<p>${link(1, t.all(total))}</p>`;
  return html`<p class="row">${page > 1 ? link(page - 1, t.previous) : ''}<span class="small soft">${t.page(page, pages)}</span>${page < pages ? link(page + 1, t.next) : ''}</p>`;
}

export interface RepositoryValues {
  readonly owner: string;
  readonly name: string;
  readonly description: string;
  readonly isPrivate: boolean;
}

export interface NewRepositoryView {
  readonly owners: readonly Pick<OwnerView, 'login'>[];
  readonly values: RepositoryValues;
  readonly mistake: Mistake | undefined;
  readonly csrfToken: string;
}

export function renderNewRepository(
  texts: ConsoleTexts,
  { owners, values, mistake, csrfToken }: NewRepositoryView,
): Html {
  const t = texts.repositories;
  // The API calls it path, as code hosts do.
  const shown = mistake && {
    message: nameByLabel(mistake.message, { path: t.name }),
    field: mistake.field === 'path' ? 'name' : mistake.field,
  };
  const choices = owners.map(({ login }) => ({ value: login, label: login }));
  return html`${renderCrumbs(texts, [{ path: '/webhooks', label: t.title }])}<h1>${t.create}</h1>${renderMistake(texts, shown, { name: t.name, description: t.description, owner: t.owner })}
<form method="post" action="/webhooks/new" class="card stack">${renderCsrf(csrfToken)}
${renderSelect({ name: 'owner', label: t.owner, choices, value: values.owner, mistake: shown })}
${renderField({ name: 'name', label: t.name, hint: t.nameHint, value: values.name, autocomplete: 'off', hasFocus: mistake === undefined, mistake: shown })}
${renderField({ name: 'description', label: t.description, hint: t.descriptionHint, value: values.description, autocomplete: 'off', isOptional: true, mistake: shown })}
${renderCheck({ name: 'private', value: '1', label: t.isPrivate, hint: t.isPrivateHint, isChosen: values.isPrivate })}
<div class="row"><button>${t.submit}</button><a href="/webhooks">${texts.cancel}</a></div></form>`;
}
