import { html } from 'hono/html';
import { renderCheck, renderCsrf, renderField, renderHidden, renderMistake } from '../../pages/elements.ts';
import { type Html, renderFocusPage } from '../../pages/layout.ts';
import type { RefusedForm } from '../../pages/refused-form.ts';
import { messages } from '../messages/messages.ts';
import type { OpenedLink } from './password-link.ts';

interface FormView {
  readonly csrfToken: string;
  readonly refused: RefusedForm | undefined;
}

function renderCard(title: string, content: Html, withPageScript = false): Html {
  return renderFocusPage({
    title,
    withPageScript,
    content: html`<div class="card stack"><h1>${title}</h1>${content}</div>`,
  });
}

export function renderForgotPage({ csrfToken, refused }: FormView): Html {
  const t = messages.forgot;
  return renderCard(
    t.title,
    html`${renderMistake(refused)}<p class="soft">${t.lead}</p>
<form method="post" action="/forgot-password" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'who', label: t.who, value: refused?.values?.who, autocomplete: 'username', hasFocus: !refused })}
<button class="full">${t.submit}</button></form>
<p class="small"><a href="/sign-in">${messages.back}</a></p>`,
  );
}

export function renderSentPage(): Html {
  const t = messages.forgot;
  return renderCard(
    t.sentTitle,
    html`<p role="status">${t.sent}</p><p class="soft small">${t.notArrived}</p><p><a href="/sign-in">${messages.back}</a></p>`,
  );
}

export function renderMailOffPage(): Html {
  const t = messages.forgot;
  return renderCard(t.title, html`<p>${t.off}</p><p><a href="/sign-in">${messages.back}</a></p>`);
}

export function renderChoosePage(view: FormView & { readonly token: string; readonly link: OpenedLink }): Html {
  const t = messages.choose;
  const { link, refused } = view;
  const isNew = link.purpose === 'invitation';
  return renderCard(
    t.title,
    html`${renderMistake(refused)}<p class="soft">${t.lead(link.user.login)}${isNew ? '' : ` ${t.ends}`}</p>
<form method="post" action="/password" class="stack">${renderCsrf(view.csrfToken)}${renderHidden({ token: view.token })}
<input type="hidden" name="username" value="${link.user.login}" autocomplete="username">
${renderField({ name: 'password', label: t.password, hint: messages.setup.passwordHint, type: 'password', autocomplete: 'new-password', mistake: refused, hasFocus: !refused })}
${isNew ? '' : renderCheck({ name: 'delete_tokens', value: '1', label: t.deleteTokens, hint: t.deleteTokensHint })}
<button class="full">${t.submit}</button></form>`,
    true,
  );
}
