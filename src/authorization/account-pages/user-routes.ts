import { html } from 'hono/html';
import type { Actor } from '../../operations/operation.ts';
import {
  formatDate,
  type Mistake,
  renderBadge,
  renderCsrf,
  renderDone,
  renderField,
  renderHidden,
  renderMistake,
} from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { findUserById, listUsers, type User } from '../accounts/user-store.ts';
import { createPerson, disablePerson, enablePerson } from '../administration/manage-people.ts';
import { messages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { AccountPages, PageRequest, Submission } from './account-pages.ts';
import { checkAdmin } from './activity-routes.ts';

const HERE = '/admin/users';
const PAGE_SIZE = 50;
const BLANK = { login: '', name: '', email: '' };

/** All people with an account, for administrators. */
export function addUserRoutes({ context, page, form }: AccountPages): void {
  page(HERE, async (request) => {
    checkAdmin(request);
    const { created, changed } = messages.users;
    const done = findDone(request.c, { created, changed });
    return showUsers(context, request, { values: BLANK, done });
  });

  form(HERE, async (submission) => {
    checkAdmin(submission);
    const values = {
      login: readField(submission.form, 'login').trim(),
      name: readField(submission.form, 'name').trim(),
      email: readField(submission.form, 'email').trim(),
    };
    try {
      await makeUser(context, submission, values);
    } catch (error) {
      return showUsers(context, submission, { values, mistake: toMistake(error) });
    }
    return submission.c.redirect(`${HERE}?done=created`, 303);
  });

  form(`${HERE}/disabled`, async (submission) => {
    checkAdmin(submission);
    const user = await findUserById(context.store, readField(submission.form, 'user_id'));
    if (user?.id === submission.session.user.id)
      return showUsers(context, submission, { values: BLANK, mistake: { message: messages.users.self } });
    if (user !== undefined) await switchUser(context, submission, user);
    return submission.c.redirect(`${HERE}?done=changed`, 303);
  });
}

async function makeUser(context: AccountPages['context'], submission: Submission, values: typeof BLANK): Promise<void> {
  const password = readField(submission.form, 'password');
  await createPerson(context, readActor(submission), {
    ...values,
    email: values.email || null,
    isAdmin: false,
    password,
  });
}

async function switchUser(
  context: AccountPages['context'],
  request: PageRequest,
  { login, disabledAtMs }: User,
): Promise<void> {
  if (disabledAtMs === null) await disablePerson(context, readActor(request), login);
  else await enablePerson(context, readActor(request), login);
}

/** A signed-in administrator has all the rights of the role. */
function readActor({ c, session: { user } }: PageRequest): Actor {
  return { userId: user.id, login: user.login, isAdmin: true, address: clientAddress(c) };
}

interface UsersShown {
  readonly values: typeof BLANK;
  readonly done?: string | undefined;
  readonly mistake?: Mistake | undefined;
}

async function showUsers(
  { store }: AccountPages['context'],
  { c, session, show }: PageRequest,
  shown: UsersShown,
): Promise<Response> {
  const t = messages.users;
  const users = await listUsers(store, PAGE_SIZE + 1, c.req.query('after') ?? '');
  const page = users.slice(0, PAGE_SIZE);
  const last = page.at(-1);
  const more =
    users.length > PAGE_SIZE && last
      ? html`<p><a class="button plain" href="${HERE}?after=${encodeURIComponent(last.login)}">${t.more}</a></p>`
      : '';
  const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(shown.done)}${renderMistake(shown.mistake)}
<ul class="list">${page.map((user) => renderUser(user, session))}</ul>${more}
${renderNewUser(shown, session.csrfToken)}`;
  return show({ title: t.title, here: HERE, at: HERE, content }, { status: shown.mistake ? 422 : 200 });
}

function renderUser(user: User, session: PageRequest['session']): Html {
  const t = messages.users;
  const isDisabled = user.disabledAtMs !== null;
  const label = isDisabled ? t.enable : t.disable;
  return html`<li class="item"><div class="row">${renderBadge(user.name)}<div class="tight">
<p><strong>${user.login}</strong> ${user.isAdmin ? html`<span class="tag good">${t.admin}</span>` : ''}${isDisabled ? html`<span class="tag bad">${t.disabled}</span>` : ''}</p>
<p class="small soft">${user.name}${user.email ? ` · ${user.email}` : ''} · ${formatDate(user.createdAtMs)}</p></div></div>
${user.id === session.user.id ? '' : html`<form method="post" action="${HERE}/disabled">${renderCsrf(session.csrfToken)}${renderHidden({ user_id: user.id })}<button class="${isDisabled ? 'plain' : 'danger'} quiet">${label}<span class="hidden"> ${user.login}</span></button></form>`}</li>`;
}

function renderNewUser({ values, mistake }: UsersShown, csrfToken: string): Html {
  const { setup } = messages;
  const t = messages.users;
  return html`<section class="card stack" aria-labelledby="new"><h2 id="new">${t.create}</h2>
<form method="post" action="${HERE}" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'login', label: setup.login, hint: setup.loginHint, value: values.login, autocomplete: 'off', mistake })}
${renderField({ name: 'name', label: setup.name, value: values.name, autocomplete: 'off', mistake })}
${renderField({ name: 'email', label: `${setup.email} (${setup.optional})`, type: 'email', value: values.email, autocomplete: 'off', isOptional: true, mistake })}
${renderField({ name: 'password', label: setup.password, hint: setup.passwordHint, type: 'password', autocomplete: 'new-password', mistake })}
<button>${t.submit}</button></form></section>`;
}
