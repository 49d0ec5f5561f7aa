/** Renders the pages of sign-in, second step and set-up. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCsrf,
  renderDone,
  renderField,
  renderHidden,
  renderMistake,
} from '../../pages/elements.ts';
import { type Html, renderFocusPage } from '../../pages/layout.ts';
import type { Messages } from '../messages/messages.ts';
import type { explainRefusal } from './flow.ts';
import { passkeyScript } from './passkey-script.ts';

interface CurrentSession {
  readonly login: string;
  /** The path to open after the sign-in. */
  readonly path: string;
  /** Why the page that the sign-in leads to does not accept this session. */
  readonly refusal: ReturnType<typeof explainRefusal>;
}

export interface SignInView {
  readonly csrfToken: string;
  /** Hidden fields of every form of the page: the flow to continue. */
  readonly hidden: Readonly<Record<string, string | undefined>>;
  /** The name of the application, if the sign-in leads to its consent page. */
  readonly application?: string | undefined;
  readonly login: string;
  readonly mistake?: Mistake | undefined;
  readonly done?: string | undefined;
  /** Whether a form was sent after its session had ended. */
  readonly hasEnded: boolean;
  /** Present if the person is signed in already. */
  readonly current?: CurrentSession | undefined;
  readonly canUsePasskeys: boolean;
  readonly canMail: boolean;
  /** What the service still lacks; undefined once an administrator exists. */
  readonly missing: 'accounts' | 'administrators' | undefined;
  /** Name of the upstream provider and where its sign-in starts. */
  readonly upstream?: { readonly name: string; readonly path: string } | undefined;
}

export function renderSignInPage(messages: Messages, view: SignInView): Html {
  const t = messages.signIn;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
${view.application === undefined ? '' : html`<p class="soft">${t.asks(view.application)}</p>`}${view.missing === undefined ? '' : html`<p class="notice">${t.missing[view.missing]}</p>`}${renderDone(view.done)}${view.hasEnded ? html`<p class="notice warn" role="status">${t.sessionEnded}</p>` : ''}${renderMistake(messages, view.mistake, { login: t.login, password: t.password })}${view.current ? renderCurrent(messages, view.current, view.application) : ''}
<form method="post" action="/sign-in" class="stack">
${renderCsrf(view.csrfToken)}${renderHidden(view.hidden)}
${renderField({ name: 'login', label: t.login, value: view.login, autocomplete: 'username webauthn', hasFocus: view.login === '' && !view.mistake, mistake: view.mistake })}
${renderField({ name: 'password', label: t.password, type: 'password', autocomplete: 'current-password', hasFocus: view.login !== '' && !view.mistake, mistake: view.mistake })}
<button class="full">${t.submit}</button>
</form>
${view.missing === 'accounts' ? '' : renderForgotten(messages, view.canMail)}
${view.canUsePasskeys || view.upstream ? renderOtherWays(messages, view) : ''}
</div>`;
  return renderFocusPage(messages, {
    title: t.title,
    content,
    withPageScript: true,
    script: view.canUsePasskeys ? passkeyScript : undefined,
  });
}

/** Links to the form for a forgotten password; without mail, explains that an administrator can make a link. */
function renderForgotten({ forgot }: Messages, canMail: boolean): Html {
  if (!canMail) return html`<p class="small soft">${forgot.withoutMail}</p>`;
  return html`<p class="small"><a href="/forgot-password">${forgot.link}</a></p>`;
}

function renderCurrent(messages: Messages, current: CurrentSession, application: string | undefined): Html {
  const t = messages.signIn;
  const { login, refusal } = current;
  if (refusal === 'another') return html`<p class="notice">${t.expectsAnother(login)}</p>`;
  if (refusal === 'same') return html`<p class="notice">${t.againAsSame(login)}</p>`;
  if (refusal === 'yes')
    return html`<p class="notice">${application === undefined ? t.again : t.againForApplication(login)}</p>`;
  return html`<p class="notice">${t.current(login)} <a href="${current.path}">${t.goOn}</a></p>`;
}

/** The passkey form is hidden until the script finds that the browser supports passkeys. */
function renderOtherWays(messages: Messages, view: SignInView): Html {
  const t = messages.signIn;
  return html`<div class="stack" data-other-ways${view.upstream ? '' : html` hidden`}>
<p class="or">${t.or}</p>
${view.canUsePasskeys ? renderPasskeyForm(messages, view) : ''}
${view.upstream ? html`<a class="button plain full" href="${view.upstream.path}">${t.upstream(view.upstream.name)}</a>` : ''}
</div>`;
}

function renderPasskeyForm(messages: Messages, view: SignInView): Html {
  const t = messages.signIn;
  return html`<form method="post" action="/sign-in/passkey" data-passkey="get" data-options="/sign-in/passkey/options" hidden>
${renderCsrf(view.csrfToken)}${renderHidden(view.hidden)}
<input type="hidden" name="ticket"><input type="hidden" name="credential">
<button class="plain full">${t.passkey}</button>
<p class="wrong" role="alert" data-failure hidden>${t.passkeyFailed}</p>
</form>`;
}

export interface SecondStepView {
  readonly csrfToken: string;
  readonly hidden: Readonly<Record<string, string | undefined>>;
  /** The path of the sign-in page, with the flow. */
  readonly backPath: string;
  readonly mistake?: Mistake | undefined;
}

export function renderSecondStepPage(messages: Messages, view: SecondStepView): Html {
  const t = messages.secondStep;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
${renderMistake(messages, view.mistake, { code: t.code })}
<p class="soft">${t.lead}</p>
<form method="post" action="/sign-in/second-step" class="stack">
${renderCsrf(view.csrfToken)}${renderHidden(view.hidden)}
${renderField({ name: 'code', label: t.code, autocomplete: 'one-time-code', className: 'one-time', hasFocus: !view.mistake, mistake: view.mistake })}
<button class="full">${t.submit}</button>
</form>
<p class="small"><a href="${view.backPath}">${messages.back}</a></p>
</div>`;
  return renderFocusPage(messages, { title: t.title, content, withPageScript: true });
}

export interface SetupView {
  readonly csrfToken: string;
  readonly token: string;
  readonly login: string;
  readonly name: string;
  readonly email: string;
  readonly mistake?: Mistake | undefined;
}

export function renderSetupPage(messages: Messages, view: SetupView): Html {
  const t = messages.setup;
  const { mistake } = view;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
<p class="soft">${t.lead}</p>
${renderMistake(messages, mistake, { login: t.login, name: t.name, email: t.email, password: t.password })}
<form method="post" action="/setup" class="stack">
${renderCsrf(view.csrfToken)}${renderHidden({ token: view.token })}
${renderField({ name: 'login', label: t.login, hint: t.loginHint, value: view.login, autocomplete: 'username', mistake, hasFocus: !mistake })}
${renderField({ name: 'name', label: t.name, value: view.name, autocomplete: 'name', mistake })}
${renderField({ name: 'email', label: `${t.email} (${t.optional})`, type: 'email', value: view.email, autocomplete: 'email', isOptional: true, mistake })}
${renderField({ name: 'password', label: t.password, hint: t.passwordHint, type: 'password', autocomplete: 'new-password', mistake })}
<button class="full">${t.submit}</button>
</form>
</div>`;
  return renderFocusPage(messages, { title: t.title, content, withPageScript: true });
}
