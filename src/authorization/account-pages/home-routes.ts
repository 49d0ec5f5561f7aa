import { html } from 'hono/html';
import { formatDate, type Mistake, renderCsrf, renderDone, renderField, renderMistake } from '../../pages/elements.ts';
import type { Html } from '../../pages/layout.ts';
import type { NavigationSection } from '../../pages/navigation.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/visits.ts';
import { auditStep } from '../accounts/audit-store.ts';
import { listOrganizationsOfUser } from '../accounts/organization-store.ts';
import { listPasskeys } from '../accounts/passkey-store.ts';
import { countRecoveryCodes, hasTotp } from '../accounts/totp-store.ts';
import { changeProfile, type User } from '../accounts/user-store.ts';
import { messages } from '../messages/messages.ts';
import type { Console, Visit } from './console.ts';

export function addHomeRoutes({ context, page, form }: Console): void {
  page('/', async ({ session, sections, show }) => {
    const advice = await findAdvice(context.store, session.user);
    return show({ title: messages.start, here: '/', content: renderHome({ user: session.user, sections, advice }) });
  });

  page('/account', async (visit) => showProfile(context.store, visit, { values: visit.session.user }));

  form('/account', async (submission) => {
    const { c, session } = submission;
    const values = {
      name: readField(submission.form, 'name'),
      email: readField(submission.form, 'email').trim() || null,
    };
    try {
      await changeProfile(context.store, session.user.id, values);
    } catch (error) {
      return showProfile(context.store, submission, { values, mistake: toMistake(error) });
    }
    await context.store.writeAll([auditStep({ kind: 'user_changed', userId: session.user.id }, context.world.nowMs())]);
    return c.redirect('/account?done=saved', 303);
  });
}

/** The next step that would protect the account better; undefined when all are done. */
async function findAdvice(store: Console['context']['store'], user: User): Promise<string | undefined> {
  const [totp, left, passkeys] = await Promise.all([
    hasTotp(store, user.id),
    countRecoveryCodes(store, user.id),
    listPasskeys(store, user.id),
  ]);
  if (totp && left < FEW_CODES) return messages.home.fewCodes(left);
  const hasPasswordOnly = user.passwordChangedAtMs !== null && !totp && passkeys.length === 0;
  return hasPasswordOnly ? messages.home.oneStep : undefined;
}

const FEW_CODES = 3;

function renderSection({ title, entries }: NavigationSection): Html {
  return html`<section class="tight"><h2>${title}</h2><ul class="tiles">${entries.map(({ path, label, about }) => html`<li><a href="${path}"><strong>${label}</strong> <span class="hint">${about}</span></a></li>`)}</ul></section>`;
}

interface HomeView {
  readonly user: User;
  readonly sections: readonly NavigationSection[];
  readonly advice: string | undefined;
}

function renderHome({ user, sections, advice }: HomeView): Html {
  const { home, nav } = messages;
  return html`<div class="tight"><h1>${home.title(user.name)}</h1><p class="soft">${home.lead}</p></div>
${advice === undefined ? '' : html`<p class="notice warn">${advice} <a href="/account/security">${nav.security}</a></p>`}
${sections.map(renderSection)}`;
}

function describeEmail({ email, isEmailVerified }: User): string {
  const t = messages.profile;
  if (email === null) return t.emailHint;
  return isEmailVerified ? t.emailVerified : t.emailNotVerified;
}

async function showProfile(
  store: Console['context']['store'],
  { c, session, show }: Visit,
  { values, mistake }: { readonly values: Pick<User, 'name' | 'email'>; readonly mistake?: Mistake },
): Promise<Response> {
  const t = messages.profile;
  const { user, csrfToken } = session;
  const organizations = await listOrganizationsOfUser(store, user.id);
  const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(findDone(c, { saved: t.saved }))}${renderMistake(mistake)}
<section class="card stack">
<dl class="facts"><dt>${t.login}</dt><dd>${user.login}</dd><dt>${t.since}</dt><dd>${formatDate(user.createdAtMs)}</dd>
${organizations.length === 0 ? '' : html`<dt>${t.organizations}</dt><dd>${organizations.map(({ login, role }) => `${login} (${t.roles[role]})`).join(', ')}</dd>`}</dl>
<form method="post" action="/account" class="stack">
${renderCsrf(csrfToken)}
${renderField({ name: 'name', label: t.name, value: values.name, autocomplete: 'name', mistake })}
${renderField({ name: 'email', label: t.email, hint: describeEmail(user), type: 'email', value: values.email ?? '', autocomplete: 'email', isOptional: true, mistake })}
<button>${messages.save}</button>
</form>
</section>`;
  return show({ title: t.title, here: '/account', content }, { status: mistake ? 422 : 200 });
}
