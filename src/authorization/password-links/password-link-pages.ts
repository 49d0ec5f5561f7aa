/** Renders the pages on which a person requests a link and chooses a password. */
import { html } from 'hono/html';
import { renderCheck, renderCsrf, renderField, renderHidden, renderMistake } from '../../pages/elements.ts';
import { type Html, renderFocusPage } from '../../pages/layout.ts';
import type { RefusedForm } from '../../pages/refused-form.ts';
import type { Messages } from '../messages/messages.ts';
import type { OpenedLink } from './password-link.ts';

interface FormView {
  readonly csrfToken: string;
  readonly refused: RefusedForm | undefined;
}

interface Card {
  readonly title: string;
  readonly content: Html;
  readonly withPageScript?: boolean;
}

function renderCard(messages: Messages, { title, content, withPageScript }: Card): Html {
  return renderFocusPage(messages, {
    title,
    withPageScript,
    content: html`<div class="card stack"><h1>${title}</h1>${content}</div>`,
  });
}

export function renderForgotPage(messages: Messages, { csrfToken, refused }: FormView): Html {
  const t = messages.forgot;
  return renderCard(messages, {
    title: t.title,
    content: html`${renderMistake(messages, refused, { who: t.who })}<p class="soft">${t.lead}</p>
<form method="post" action="/forgot-password" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'who', label: t.who, value: refused?.values?.who, autocomplete: 'username', hasFocus: !refused, mistake: refused })}
<button class="full">${t.submit}</button></form>
<p class="small"><a href="/sign-in">${messages.back}</a></p>`,
    withPageScript: true,
  });
}

export function renderSentPage(messages: Messages): Html {
  const t = messages.forgot;
  return renderCard(messages, {
    title: t.sentTitle,
    content: html`<p role="status">${t.sent}</p><p class="soft small">${t.notArrived}</p><p><a href="/sign-in">${messages.back}</a></p>`,
  });
}

export function renderMailOffPage(messages: Messages): Html {
  const t = messages.forgot;
  return renderCard(messages, {
    title: t.title,
    content: html`<p>${t.off}</p><p><a href="/sign-in">${messages.back}</a></p>`,
  });
}

export function renderChoosePage(
  messages: Messages,
  view: FormView & { readonly token: string; readonly link: OpenedLink },
): Html {
  const t = messages.choose;
  const { link, refused } = view;
  const isNew = link.purpose === 'invitation';
  return renderCard(messages, {
    title: t.title,
    content: html`${renderMistake(messages, refused, { password: t.password })}<p class="soft">${t.lead(link.user.login)}${isNew ? '' : ` ${t.ends}`}</p>
<form method="post" action="/password" class="stack">${renderCsrf(view.csrfToken)}${renderHidden({ token: view.token })}
<input type="hidden" name="username" value="${link.user.login}" autocomplete="username">
${renderField({ name: 'password', label: t.password, hint: messages.setup.passwordHint, type: 'password', autocomplete: 'new-password', mistake: refused, hasFocus: !refused })}
${isNew ? '' : renderCheck({ name: 'delete_tokens', value: '1', label: t.deleteTokens, hint: t.deleteTokensHint })}
<button class="full">${t.submit}</button></form>`,
    withPageScript: true,
  });
}
