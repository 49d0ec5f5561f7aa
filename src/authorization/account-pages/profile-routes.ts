/** Serves the page of a person's profile: name, address, notices. */
import { html } from 'hono/html';
import { type Mistake, renderCheck, renderCsrf, renderDone, renderField, renderMistake } from '../../pages/elements.ts';
import { readChange, renderShown } from '../../pages/forms/form-change.ts';
import type { Html } from '../../pages/layout.ts';
import { readField, toMistake } from '../../pages/page-routes.ts';
import { findDone } from '../../pages/signed-in-pages.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { listOrganizationsOfUser } from '../accounts/organization-store.ts';
import type { Profile, User } from '../accounts/user-store.ts';
import { switchNoticesStatement, wantsNotices } from '../administration/recipients-store.ts';
import { type Messages, readMessages } from '../messages/messages.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { AccountPages, PageRequest } from './account-pages.ts';
import { changeProfile } from './profile-store.ts';

export function addProfileRoutes(pages: AccountPages): void {
  const { context, page, form } = pages;
  if (context.mailer !== undefined) addNoticeForm(pages);
  page('/account', async (request) => showProfile(context, request, { values: request.session.user }));

  form('/account', async (submission) => {
    const messages = readMessages(submission.c);
    const { c, session } = submission;
    const { values, isOutdated } = readChange(submission.form, {
      sent: {
        name: readField(submission.form, 'name'),
        email: readField(submission.form, 'email').trim() || null,
      },
      stored: profileOf(session.user),
    });
    if (isOutdated)
      return showProfile(context, submission, { values, mistake: { message: messages.changedMeanwhile } });
    try {
      const event = { kind: 'user_changed', userId: session.user.id, address: clientAddress(c) } as const;
      const statements = [auditStatement(event, context.world.nowMs())];
      await changeProfile(context.store, session.user.id, { ...values, statements });
    } catch (error) {
      return showProfile(context, submission, { values, mistake: toMistake(messages, error) });
    }
    return c.redirect('/account?done=saved', 303);
  });
}

function profileOf({ name, email }: User): Profile {
  return { name, email };
}

/** Adds the form of notices, which exists only where the service sends mail. */
function addNoticeForm({ context, form }: AccountPages): void {
  form('/account/notices', async ({ c, session, form }) => {
    const choice = form.has('notices') ? 'on' : 'off';
    await context.store.writeAll([switchNoticesStatement(session.user.id, choice, context.world.nowMs())]);
    return c.redirect('/account?done=notices', 303);
  });
}

function renderNotices(messages: Messages, { user, csrfToken }: PageRequest['session'], wants: boolean): Html {
  const t = messages.notices;
  return html`<section class="card stack" aria-labelledby="notices"><h2 id="notices">${t.title}</h2>
<p class="soft">${t.about}${user.isEmailVerified ? '' : ` ${t.noAddress}`}</p>
<form method="post" action="/account/notices" class="stack">${renderCsrf(csrfToken)}
${renderCheck({ name: 'notices', value: '1', label: t.on, isChosen: wants })}<button class="plain">${messages.save}</button></form></section>`;
}

function describeEmail(messages: Messages, { email, isEmailVerified }: User): string {
  const t = messages.profile;
  if (email === null) return t.emailHint;
  return isEmailVerified ? t.emailVerified : t.emailNotVerified;
}

async function showProfile(
  { store, mailer }: AccountPages['context'],
  { c, session, show }: PageRequest,
  { values, mistake }: { readonly values: Profile; readonly mistake?: Mistake },
): Promise<Response> {
  const messages = readMessages(c);
  const t = messages.profile;
  const { user, csrfToken } = session;
  const organizations = await listOrganizationsOfUser(store, user.id);
  const content = html`<div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div>
${renderDone(findDone(c, { saved: t.saved, notices: messages.notices.saved }))}${renderMistake(messages, mistake, { name: t.name, email: t.email })}
<section class="card stack">
<dl class="facts"><dt>${t.login}</dt><dd>${user.login}</dd><dt>${t.since}</dt><dd>${messages.format.date(user.createdAtMs)}</dd>
${organizations.length === 0 ? '' : html`<dt>${t.organizations}</dt><dd>${organizations.map(({ login, role }) => `${login} (${t.roles[role]})`).join(', ')}</dd>`}</dl>
<form method="post" action="/account" class="stack">
${renderCsrf(csrfToken)}${renderShown(profileOf(user))}
${renderField({ name: 'name', label: t.name, value: values.name, autocomplete: 'name', mistake })}
${renderField({ name: 'email', label: t.email, hint: describeEmail(messages, user), type: 'email', value: values.email ?? '', autocomplete: 'email', isOptional: true, mistake })}
<button>${messages.save}</button>
</form>
</section>
${mailer === undefined ? '' : renderNotices(messages, session, await wantsNotices(store, user.id))}`;
  return show({ title: t.title, here: '/account', content }, { status: mistake ? 422 : 200 });
}
