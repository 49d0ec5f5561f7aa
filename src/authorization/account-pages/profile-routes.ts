import { html } from 'hono/html';
import { formatDate, type Mistake, renderCsrf, renderDone, renderField, renderMistake } from '../../pages/elements.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { listOrganizationsOfUser } from '../accounts/organization-store.ts';
import { changeProfile, type User } from '../accounts/user-store.ts';
import { messages } from '../messages/messages.ts';
import type { AccountPages, PageRequest } from './account-pages.ts';

export function addProfileRoutes({ context, page, form }: AccountPages): void {
  page('/account', async (request) => showProfile(context.store, request, { values: request.session.user }));

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
    await context.store.writeAll([
      auditStatement({ kind: 'user_changed', userId: session.user.id }, context.world.nowMs()),
    ]);
    return c.redirect('/account?done=saved', 303);
  });
}

function describeEmail({ email, isEmailVerified }: User): string {
  const t = messages.profile;
  if (email === null) return t.emailHint;
  return isEmailVerified ? t.emailVerified : t.emailNotVerified;
}

async function showProfile(
  store: AccountPages['context']['store'],
  { c, session, show }: PageRequest,
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
