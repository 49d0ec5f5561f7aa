/** Renders the page of one person and the changes that it offers. */
import { html } from 'hono/html';
import { type Mistake, renderCsrf, renderDone, renderMistake } from '../../pages/elements.ts';
import { nameByLabel } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import type { User } from '../accounts/user-store.ts';
import type { UserState } from '../administration/people-store.ts';
import type { Messages } from '../messages/messages.ts';
import { PEOPLE, pathOfPerson } from './people-view.ts';

export type ChangeName = keyof Messages['changes'];

/** Lists the changes that this administrator can make to this account now. */
export function listChanges(
  user: User,
  { administrator, hasTotp }: { readonly administrator: Pick<User, 'id'>; readonly hasTotp: boolean },
): ChangeName[] {
  const isOwn = user.id === administrator.id;
  if (user.disabledAtMs !== null) return ['enable'];
  return [
    'password-link',
    ...(user.email === null || user.isEmailVerified ? [] : (['verify-email'] as const)),
    ...(hasTotp ? (['reset-second-step'] as const) : []),
    user.isAdmin ? 'unmake-admin' : 'make-admin',
    ...(isOwn ? [] : (['disable'] as const)),
  ];
}

/** Whether the change was made already, for example by a second click. `seenEmail` is the address that the form showed. */
export function isMade(
  change: string | undefined,
  { user, hasTotp, seenEmail }: { readonly user: User; readonly hasTotp: boolean; readonly seenEmail: string },
): boolean {
  const made: Readonly<Partial<Record<ChangeName, boolean>>> = {
    disable: user.disabledAtMs !== null,
    enable: user.disabledAtMs === null,
    'make-admin': user.isAdmin,
    'unmake-admin': !user.isAdmin,
    'reset-second-step': !hasTotp,
    'verify-email': user.isEmailVerified && user.email === seenEmail,
  };
  return Object.entries(made).some(([name, isNow]) => name === change && isNow);
}

export interface PersonView {
  readonly user: UserState;
  readonly hasTotp: boolean;
  readonly passkeys: number;
  readonly changes: readonly ChangeName[];
  readonly done: string | undefined;
  /** A new link, shown this once. */
  readonly link: string | undefined;
  readonly isLinkSpent: boolean;
}

const DANGERS: ReadonlySet<ChangeName> = new Set(['disable', 'reset-second-step', 'unmake-admin']);

export function renderPerson(messages: Messages, view: PersonView): Html {
  const t = messages.person;
  const { user, link } = view;
  const path = pathOfPerson(user.login);
  return html`<p class="small"><a href="${PEOPLE}">${messages.users.title}</a></p><div class="tight"><h1>${user.login}</h1><p class="soft">${user.name}</p></div>
${renderDone(view.done)}${view.isLinkSpent ? html`<p class="notice">${t.linkSpent}</p>` : ''}
${link === undefined ? '' : html`<div class="notice" role="status"><strong>${t.link}</strong><code class="secret" id="link" data-copy>${link}</code></div>`}
${renderFacts(messages, view)}
<section class="card stack" aria-labelledby="actions"><h2 id="actions">${t.actions}</h2>
<div class="row">${view.changes.map((change) => html`<a class="button ${DANGERS.has(change) ? 'danger' : 'plain'}" href="${path}/${change}">${messages.changes[change].label}</a>`)}</div></section>
<p><a href="/admin/activity?user=${encodeURIComponent(user.login)}">${t.activity}</a></p>`;
}

function renderState(messages: Messages, { disabledAtMs, isInvited }: UserState): Html | string {
  const t = messages.person;
  if (disabledAtMs !== null) return html`<span class="tag bad">${t.states.disabled}</span>`;
  return isInvited ? t.states.invited : t.states.active;
}

function renderFacts(messages: Messages, { user, hasTotp, passkeys }: PersonView): Html {
  const t = messages.person;
  const ways = [hasTotp ? t.totp : '', passkeys > 0 ? t.passkeys(passkeys) : ''].filter((way) => way !== '');
  return html`<section class="card"><dl class="facts">
<dt>${t.state}</dt><dd>${renderState(messages, user)}</dd>
<dt>${t.role}</dt><dd>${user.isAdmin ? t.administrator : t.person}</dd>
<dt>${t.email}</dt><dd>${user.email === null ? t.none : `${user.email} (${user.isEmailVerified ? t.verified : t.notVerified})`}</dd>
<dt>${t.password}</dt><dd>${user.passwordChangedAtMs === null ? t.none : t.passwordSet(messages.format.date(user.passwordChangedAtMs))}</dd>
<dt>${t.secondStep}</dt><dd>${ways.length === 0 ? t.none : ways.join(messages.marks.list)}</dd>
<dt>${t.since}</dt><dd>${messages.format.date(user.createdAtMs)}</dd></dl></section>`;
}

export interface ChangeView {
  readonly user: User;
  readonly change: ChangeName;
  readonly canMail: boolean;
  readonly mistake: Mistake | undefined;
  readonly csrfToken: string;
}

export function renderChange(messages: Messages, { user, change, canMail, mistake, csrfToken }: ChangeView): Html {
  const t = messages.changes[change];
  const path = pathOfPerson(user.login);
  // The form has no field for the address, so the message names it by its label.
  const shown = mistake && { message: nameByLabel(mistake.message, { email: messages.person.email }) };
  return html`<p class="small"><a href="${path}">${user.login}</a></p><h1>${t.title(user.login)}</h1>${renderMistake(messages, shown, {})}
<section class="card stack"><p>${t.lead}</p>${change === 'make-admin' && user.hasDelegatedAccess ? html`<p>${messages.person.endsAccess}</p>` : ''}${change === 'verify-email' ? html`<p><strong>${user.email}</strong></p>` : ''}
<form method="post" action="${path}/${change}" class="row">${renderCsrf(csrfToken)}${change === 'verify-email' ? html`<input type="hidden" name="email" value="${user.email}">` : ''}
${change === 'password-link' ? renderWays(messages, canMail) : html`<button class="${DANGERS.has(change) ? 'danger' : ''}">${t.submit}</button>`}
<a href="${path}">${messages.cancel}</a></form></section>`;
}

function renderWays(messages: Messages, canMail: boolean): Html {
  const t = messages.changes['password-link'];
  return html`${canMail ? html`<button name="way" value="mail">${t.submit}</button>` : ''}<button name="way" value="show" class="${canMail ? 'plain' : ''}">${messages.showLink}</button>`;
}
