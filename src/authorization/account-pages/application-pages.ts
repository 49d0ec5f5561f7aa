/** Renders the pages of a person's OAuth applications: list, form, secrets. */
import { html } from 'hono/html';
import {
  type Mistake,
  renderBadge,
  renderCheck,
  renderCsrf,
  renderDone,
  renderField,
  renderGroup,
  renderMistake,
  renderQuestion,
  renderTextArea,
} from '../../pages/elements.ts';
import type { Labels } from '../../pages/field-labels.ts';
import { renderShown } from '../../pages/forms/form-change.ts';
import type { Html } from '../../pages/layout.ts';
import type { ApplicationSecret } from '../applications/application-secret-store.ts';
import type { Application } from '../applications/application-store.ts';
import type { Messages } from '../messages/messages.ts';

/** The fields of the form as the owner filled them in. */
export interface ApplicationValues {
  readonly name: string;
  readonly homepage: string;
  readonly description: string;
  /** One URI per line. */
  readonly redirectUris: string;
  readonly isPublic: boolean;
  readonly mayActAlone: boolean;
  readonly mayConnectDevices: boolean;
  readonly authenticatedRefresh: boolean;
}

export function valuesOf(application: Application): ApplicationValues {
  const { name, homepage, description, isPublic, grantTypes, authenticatedRefresh } = application;
  return {
    name,
    homepage,
    description,
    redirectUris: application.redirectUris.join('\n'),
    isPublic,
    mayActAlone: grantTypes.includes('client_credentials'),
    mayConnectDevices: grantTypes.includes('device_code'),
    authenticatedRefresh,
  };
}

export function renderApplicationList(
  messages: Messages,
  applications: readonly Application[],
  done: string | undefined,
): Html {
  const t = messages.applications;
  const list = applications.map(
    (application) => html`<li class="item"><div class="row">${renderBadge(application.name)}<div class="tight">
<p><a href="/account/applications/${application.clientId}"><strong>${application.name}</strong></a> ${application.disabledAtMs === undefined ? '' : html`<span class="tag bad">${t.disabled}</span>`}</p>
<p class="small soft"><code>${application.clientId}</code> · ${application.isPublic ? t.public : t.confidential}</p></div></div></li>`,
  );
  return html`<div class="row spread"><div class="tight"><h1>${t.title}</h1><p class="soft">${t.lead}</p></div><a class="button" href="/account/applications/new">${t.create}</a></div>
${renderDone(done)}
${applications.length === 0 ? html`<p class="empty">${t.none}</p>` : html`<ul class="list">${list}</ul>`}`;
}

interface FormView {
  readonly values: ApplicationValues;
  readonly mistake?: Mistake | undefined;
  readonly csrfToken: string;
}

export function renderNewApplication(messages: Messages, view: FormView): Html {
  const t = messages.applications;
  const { isPublic } = view.values;
  return html`<h1>${t.createTitle}</h1>${renderMistake(messages, view.mistake, labelsOf(messages))}
<form method="post" action="/account/applications" class="card stack">${renderCsrf(view.csrfToken)}
${renderFields(messages, view)}
<fieldset><legend>${t.kind}</legend>
${renderCheck({ name: 'kind', value: 'confidential', label: t.confidential, hint: t.confidentialHint, isChosen: !isPublic }, 'radio')}
${renderCheck({ name: 'kind', value: 'public', label: t.public, hint: t.publicHint, isChosen: isPublic }, 'radio')}
</fieldset>
${renderGrants(messages, view)}
<div class="row"><button>${t.submit}</button><a href="/account/applications">${messages.cancel}</a></div>
</form>`;
}

function labelsOf({ applications: t }: Messages): Labels {
  const { name, homepage, description, redirectUris: redirect_uri, abilities: grant_types } = t;
  return { name, homepage, description, redirect_uri, grant_types, authenticated_refresh: t.strictRefresh };
}

function renderFields(messages: Messages, { values, mistake }: FormView): Html {
  const t = messages.applications;
  return html`${renderField({ name: 'name', label: t.name, hint: t.nameHint, value: values.name, autocomplete: 'off', mistake })}
${renderField({ name: 'homepage', label: t.homepage, hint: t.homepageHint, type: 'url', value: values.homepage, autocomplete: 'off', isOptional: true, mistake })}
${renderTextArea({ name: 'description', label: t.description, hint: t.descriptionHint, value: values.description, mistake })}
${renderTextArea({ name: 'redirect_uri', label: t.redirectUris, hint: t.redirectUrisHint, value: values.redirectUris, mistake })}`;
}

function renderGrants(messages: Messages, { values, mistake }: FormView): Html {
  const t = messages.applications;
  const checks = html`${renderCheck({ name: 'device', value: '1', label: t.device, hint: t.deviceHint, isChosen: values.mayConnectDevices })}
${renderCheck({ name: 'client_credentials', value: '1', label: t.clientCredentials, hint: t.clientCredentialsHint, isChosen: values.mayActAlone })}
${renderCheck({ name: 'authenticated_refresh', value: '1', label: t.strictRefresh, hint: t.strictRefreshHint, isChosen: values.authenticatedRefresh, mistake })}`;
  return renderGroup({ name: 'grant_types', label: t.abilities, mistake }, checks);
}

export interface ApplicationView extends FormView {
  readonly application: Application;
  /** The address of the authorization server. */
  readonly issuer: string;
  readonly secrets: readonly ApplicationSecret[];
  /** A new secret, shown this once. */
  readonly secret?: string | undefined;
  readonly done?: string | undefined;
}

export function renderApplication(messages: Messages, view: ApplicationView): Html {
  const t = messages.applications;
  const { application, csrfToken } = view;
  const path = `/account/applications/${application.clientId}`;
  return html`<p class="small"><a href="/account/applications">${t.title}</a></p><h1>${application.name}</h1>
${renderDone(view.done)}${renderMistake(messages, view.mistake, { ...labelsOf(messages), confirm: t.deleteConfirm(application.name) })}
${application.secretInQueryAtMs === undefined ? '' : html`<p class="notice warn">${t.inQuery(messages.format.date(application.secretInQueryAtMs))}</p>`}
<section class="card stack"><dl class="facts"><dt>${t.clientId}</dt><dd><code data-copy>${application.clientId}</code></dd><dt>${t.kind}</dt><dd>${application.isPublic ? t.public : t.confidential}</dd>
<dt>${t.signInAddress}</dt><dd><code>${view.issuer}/oauth/authorize</code></dd><dt>${t.tokenAddress}</dt><dd><code>${view.issuer}/oauth/token</code></dd>
<dt>${t.metadataAddress}</dt><dd><code>${view.issuer}/.well-known/openid-configuration</code></dd></dl></section>
${application.isPublic ? '' : renderSecrets(messages, view, path)}
<section class="card stack" aria-labelledby="settings"><h2 id="settings">${t.settings}</h2>
<form method="post" action="${path}" class="stack">${renderCsrf(csrfToken)}${renderShown(valuesOf(application))}${renderFields(messages, view)}${renderGrants(messages, view)}<button>${messages.save}</button></form></section>
<section class="card stack" aria-labelledby="delete"><h2 id="delete">${t.deleteTitle}</h2><p class="soft">${t.deleteLead}</p>
<form method="post" action="${path}/delete" class="stack">${renderCsrf(csrfToken)}
${renderField({ name: 'confirm', label: t.deleteConfirm(application.name), autocomplete: 'off', mistake: view.mistake })}
<button class="danger">${t.delete}</button></form></section>`;
}

function renderSecrets(messages: Messages, { secret, secrets, csrfToken }: ApplicationView, path: string): Html {
  const t = messages.applications;
  return html`<section class="card stack" aria-labelledby="secrets"><h2 id="secrets">${t.secrets}</h2><p class="soft">${t.secretsLead}</p>
${secret === undefined ? '' : html`<div class="notice" role="status"><strong>${t.secretOnce}</strong><code class="secret" id="new-secret" data-copy>${secret}</code></div>`}
${secrets.length === 0 ? html`<p class="empty">${t.noSecrets}</p>` : html`<ul class="list">${secrets.map((each) => renderSecret(messages, each, { csrfToken, path, isOnly: secrets.length === 1 }))}</ul>`}
${secrets.length < 2 ? html`<form method="post" action="${path}/secrets">${renderCsrf(csrfToken)}<button class="plain">${t.addSecret}</button></form>` : ''}</section>`;
}

function renderSecret(
  messages: Messages,
  secret: ApplicationSecret,
  { csrfToken, path, isOnly }: { readonly csrfToken: string; readonly path: string; readonly isOnly: boolean },
): Html {
  const t = messages.applications;
  const used =
    secret.lastUsedAtMs === undefined ? t.secretNever : t.secretUsed(messages.format.date(secret.lastUsedAtMs));
  return html`<li class="item"><div class="tight"><p><strong>${t.secretEnds(secret.hint)}</strong></p>
<p class="small soft">${t.secretMade(messages.format.date(secret.createdAtMs))} · ${used}</p></div>
${isOnly ? '' : renderQuestion(messages, { label: t.deleteSecret, subject: t.secretEnds(secret.hint), question: t.askDeleteSecret, action: `${path}/secrets/delete`, csrfToken, fields: { slot: String(secret.slot), created_at: String(secret.createdAtMs) } })}</li>`;
}
