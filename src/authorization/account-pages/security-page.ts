/** Renders the security page of an account: password, second step, passkeys, linked accounts. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderCheck,
  renderCsrf,
  renderDone,
  renderField,
  renderMistake,
  renderQuestion,
} from '../../pages/elements.ts';
import type { Labels } from '../../pages/field-labels.ts';
import type { Html } from '../../pages/layout.ts';
import type { Passkey } from '../accounts/passkey-store.ts';
import type { UpstreamAccount } from '../accounts/upstream-account-store.ts';
import type { User } from '../accounts/user-store.ts';
import type { Messages } from '../messages/messages.ts';
import { MAX_PASSKEY_NAME_LENGTH } from '../sign-in/passkeys.ts';
import { renderQrCode } from './qr-code.ts';

/** The contents of the page. At most one of its forms shows a mistake. */
export interface SecurityView {
  readonly user: User;
  readonly csrfToken: string;
  readonly hasTotp: boolean;
  readonly recoveryCodesLeft: number;
  readonly passkeys: readonly Passkey[];
  readonly canUsePasskeys: boolean;
  /** The sign-in is recent enough to add another way to sign in. */
  readonly isFresh: boolean;
  readonly upstream?: { readonly name: string; readonly account: UpstreamAccount | undefined } | undefined;
  readonly done?: string | undefined;
  readonly mistake?: (Mistake & { readonly form: SecurityForm }) | undefined;
}

export type SecurityForm = 'password' | 'totp' | 'recovery' | 'passkeys' | 'upstream';

export function renderSecurity(messages: Messages, view: SecurityView): Html {
  const t = messages.security;
  const { mistake } = view;
  return html`<h1>${t.title}</h1>${renderDone(view.done)}${renderMistake(messages, mistake, labelsOf(messages))}
${renderPassword(messages, view)}${renderTotp(messages, view)}${view.canUsePasskeys ? renderPasskeys(messages, view) : ''}${view.upstream ? renderUpstream(messages, view, view.upstream) : ''}`;
}

function labelsOf({ security: t }: Messages): Labels {
  const { current, fresh: password, proveFirst } = t;
  return { current, password, recovery_password: proveFirst, totp_password: proveFirst };
}

function mistakeOf({ mistake }: SecurityView, form: SecurityForm): Mistake | undefined {
  return mistake?.form === form ? mistake : undefined;
}

function renderPassword(messages: Messages, view: SecurityView): Html {
  const t = messages.security;
  const { user } = view;
  const mistake = mistakeOf(view, 'password');
  const has = user.passwordChangedAtMs !== null;
  return html`<section class="card stack" aria-labelledby="password"><div class="tight"><h2 id="password">${t.changePassword}</h2>
<p class="soft">${has ? t.passwordAge(messages.format.date(user.passwordChangedAtMs ?? 0)) : t.noPassword}</p></div>
<form method="post" action="/account/security/password" class="stack">${renderCsrf(view.csrfToken)}
<input hidden type="text" name="username" value="${user.login}" autocomplete="username" readonly>
${has ? renderField({ name: 'current', label: t.current, type: 'password', autocomplete: 'current-password', mistake }) : ''}
${renderField({ name: 'password', label: t.fresh, hint: messages.setup.passwordHint, type: 'password', autocomplete: 'new-password', mistake })}
${renderCheck({ name: 'revoke', value: '1', label: t.alsoRevoke, hint: t.alsoRevokeHint })}
<p class="small soft">${t.endsSessions}</p>
<button>${t.change}</button></form></section>`;
}

function renderTotp(messages: Messages, view: SecurityView): Html {
  const t = messages.security;
  const tag = view.hasTotp
    ? html`<span class="tag good">${t.totpOn}</span>`
    : html`<span class="tag">${t.totpOff}</span>`;
  return html`<section class="card stack" aria-labelledby="totp"><div class="tight"><h2 id="totp">${t.totp} ${tag}</h2><p class="soft">${t.totpAbout}</p></div>
${view.hasTotp ? renderTotpForms(messages, view) : html`<form method="post" action="/account/security/totp">${renderCsrf(view.csrfToken)}<button class="plain">${t.totpStart}</button></form>`}</section>`;
}

/** Both forms need the password, so that a browser that was left open cannot remove the second step. */
function renderTotpForms(messages: Messages, view: SecurityView): Html {
  const t = messages.security;
  const ways = [
    { form: 'recovery', label: t.recoveryRenew, path: '/account/security/recovery-codes', shade: 'plain' },
    { form: 'totp', label: t.totpStop, path: '/account/security/totp/stop', shade: 'danger' },
  ] as const;
  return html`<p>${t.recoveryLeft(view.recoveryCodesLeft)}</p>
${ways.map(
  ({ form, label, path, shade }) => html`<details${mistakeOf(view, form) ? html` open` : ''}><summary>${label}</summary>
<form method="post" action="${path}" class="stack">${renderCsrf(view.csrfToken)}
${renderProof(messages, { form, user: view.user, mistake: mistakeOf(view, form) })}
<button class="${shade}">${label}</button></form></details>`,
)}`;
}

/** Without a password, the recent sign-in that these forms require is proof enough. */
function renderProof(
  messages: Messages,
  { form, user, mistake }: { form: string; user: User; mistake: Mistake | undefined },
): Html | '' {
  if (user.passwordChangedAtMs === null) return '';
  const name = `${form}_password`;
  return renderField({
    name,
    label: messages.security.proveFirst,
    type: 'password',
    autocomplete: 'current-password',
    mistake,
  });
}

const SIGN_IN_AGAIN = '/sign-in?return_to=%2Faccount%2Fsecurity&again=yes';

function renderNewPasskey(messages: Messages, csrfToken: string): Html {
  const t = messages.security;
  return html`<form method="post" action="/account/security/passkeys" data-passkey="create" data-options="/account/security/passkeys/options" class="stack" hidden>
${renderCsrf(csrfToken)}<input type="hidden" name="ticket"><input type="hidden" name="credential">
${renderField({ name: 'name', label: t.passkeyName, value: t.passkeyDefaultName, maxLength: MAX_PASSKEY_NAME_LENGTH, autocomplete: 'off' })}
<button class="plain">${t.passkeyAdd}</button><p class="wrong" role="alert" data-failure hidden>${t.passkeyFailed}</p><p class="wrong" role="alert" data-known hidden>${t.passkeyKnown}</p></form>
<noscript><p class="small soft">${t.passkeyNeedsScript}</p></noscript>`;
}

function renderPasskeys(messages: Messages, { passkeys, csrfToken, isFresh, user }: SecurityView): Html {
  const t = messages.security;
  return html`<section class="card stack" aria-labelledby="passkeys"><div class="tight"><h2 id="passkeys">${t.passkeys}</h2><p class="soft">${t.passkeysAbout}</p></div>
${passkeys.length === 0 ? html`<p class="empty">${t.noPasskeys}</p>` : html`<ul class="list">${passkeys.map((passkey) => renderPasskey(messages, passkey, csrfToken))}</ul>`}
${isFresh ? renderNewPasskey(messages, csrfToken) : html`<p><a href="${SIGN_IN_AGAIN}&login_hint=${user.login}">${t.passkeySignInAgain}</a></p>`}</section>`;
}

function renderPasskey(messages: Messages, passkey: Passkey, csrfToken: string): Html {
  const t = messages.security;
  const used =
    passkey.lastUsedAtMs === null ? t.passkeyNever : t.passkeyUsed(messages.format.date(passkey.lastUsedAtMs));
  return html`<li class="item"><div class="tight"><p><strong>${passkey.name}</strong></p><p class="small soft">${t.passkeyAdded(messages.format.date(passkey.createdAtMs))} · ${used}</p></div>
${renderQuestion(messages, { label: messages.remove, subject: passkey.name, question: t.askRemovePasskey(passkey.name), action: '/account/security/passkeys/remove', csrfToken, fields: { passkey_id: passkey.id } })}</li>`;
}

function renderUpstream(
  messages: Messages,
  view: SecurityView,
  { name, account }: NonNullable<SecurityView['upstream']>,
): Html {
  const t = messages.security;
  const linked = renderQuestion(messages, {
    label: t.upstreamUnlink,
    question: t.askUnlink(name),
    action: '/account/security/upstream/unlink',
    csrfToken: view.csrfToken,
  });
  const open = html`<form method="post" action="/account/security/upstream/link">${renderCsrf(view.csrfToken)}<button class="plain">${t.upstreamLink(name)}</button></form>`;
  return html`<section class="card stack" aria-labelledby="upstream"><div class="tight"><h2 id="upstream">${t.upstream(name)}</h2>
<p class="soft">${account ? t.upstreamAs(account.label) : t.upstreamAbout}</p></div>${account ? linked : open}</section>`;
}

export interface TotpView {
  readonly csrfToken: string;
  readonly seed: string;
  readonly uri: string;
  readonly mistake?: Mistake | undefined;
}

export function renderTotpSetup(messages: Messages, view: TotpView): Html {
  const t = messages.security;
  return html`<p class="small"><a href="/account/security">${t.title}</a></p><h1>${t.totpStart}</h1>${renderMistake(messages, view.mistake, { code: t.totpConfirm })}
<section class="card stack"><h2>${t.totpScan}</h2>${renderQrCode(view.uri, t.totpScan)}
<p>${t.totpKey}${messages.marks.colon}<code class="secret" id="totp-key">${view.seed.replace(/(.{4})(?=.)/g, '$1 ')}</code></p>
<p class="small"><a href="${view.uri}">${t.totpUri}</a></p>
<form method="post" action="/account/security/totp/confirm" class="stack">${renderCsrf(view.csrfToken)}
${renderField({ name: 'code', label: t.totpConfirm, autocomplete: 'one-time-code', inputMode: 'numeric', className: 'one-time', mistake: view.mistake })}
<div class="row"><button>${t.totpSubmit}</button><a href="/account/security">${messages.cancel}</a></div></form></section>`;
}

export function renderRecoveryCodes(messages: Messages, codes: readonly string[]): Html {
  const t = messages.security;
  return html`<h1>${t.recovery}</h1>
<section class="card stack"><p class="notice warn">${t.recoveryAbout}</p>
<ul class="codes" data-copy data-download="trivet-recovery-codes.txt">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<p><a class="button" href="/account/security">${t.recoveryDone}</a></p></section>`;
}
