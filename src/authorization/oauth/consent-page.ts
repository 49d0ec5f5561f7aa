/** Renders the consent page: who asks, for what, and where the answer goes. Allow and deny are equally prominent. */
import { html } from 'hono/html';
import { renderBadge, renderCsrf, renderHidden } from '../../pages/elements.ts';
import { type Html, renderFocusPage } from '../../pages/layout.ts';
import { isAdministratorScope } from '../../scopes.ts';
import { describeScope } from '../messages/describe-scope.ts';
import type { Messages } from '../messages/messages.ts';
import { type ConsentView, MANY_PEOPLE } from './consent-view.ts';

const FORM_ID = 'decide';

export function renderConsentPage(messages: Messages, view: ConsentView): Html {
  const t = messages.consent;
  const { application, user } = view;
  const content = html`<div class="card stack">
<div class="row">${renderBadge(application.name)}<span aria-hidden="true" class="soft">→</span>${renderBadge(user.name)}</div>
<div class="tight">
<h1>${t.title(application.name)}</h1>
<p class="soft">${describeOrigin(messages, view)}</p>
</div>
<p><strong>${application.name}</strong> ${t.asks}${messages.marks.comma}<strong>${user.login}</strong>${messages.marks.stop}${view.switchAccountUrl === undefined ? '' : html`<a href="${view.switchAccountUrl}">${t.another}</a>`}</p>
${application.description ? html`<p class="soft">${application.description}</p>` : ''}
<section aria-labelledby="may">
<h2 id="may">${t.may}</h2>
${view.canDeselectScopes ? html`<p class="small soft">${t.leaveOut}</p>` : ''}
<ul class="grants">${view.scopes.map((asked) => renderScope(messages, asked, view.canDeselectScopes && asked.scope !== 'openid'))}</ul>
</section>
<p class="small soft">${view.mayAlsoPredict ? t.mayAlsoPredict : t.mayNot}</p>
${view.redirectHost === undefined ? html`<p class="notice warn">${messages.device.check}</p>` : renderTarget(messages, view.redirectHost)}
<form method="post" action="${view.action}" class="pair" id="${FORM_ID}">
${renderCsrf(view.csrfToken)}${renderHidden({ request: view.request, narrow: view.canDeselectScopes ? '1' : undefined })}
<button class="equal" name="decision" value="deny">${t.deny}</button>
<button name="decision" value="allow">${t.allow}</button>
</form>
<p class="small soft">${t.lasts(messages.format.exactDuration(view.accessLifetimeSeconds))}${messages.marks.stop}${t.takeBack}</p>
</div>`;
  // A redirect may open a native application while this page stays: its buttons have to work again.
  const withPageScript = view.redirectHost === undefined;
  return renderFocusPage(messages, { title: t.title(application.name), content, wide: true, withPageScript });
}

function describeOrigin(messages: Messages, view: ConsentView): Html {
  const { application, ownerLogin, homepageHost } = view;
  const t = messages.consent;
  const facts = [
    ownerLogin === undefined ? t.byService : t.by(ownerLogin),
    homepageHost,
    // An application that a migration registered has no registration time.
    application.createdAtMs === 0 ? undefined : t.registered(messages.format.date(application.createdAtMs)),
    t.usedBy(view.people, MANY_PEOPLE),
    application.isPublic ? t.publicClient : undefined,
  ];
  return html`${facts.filter((fact) => fact !== undefined).join(' · ')}`;
}

/** The boxes are outside the form, before its buttons, and refer to it by its id. */
function renderScope(messages: Messages, { scope, isNew }: ConsentView['scopes'][number], mayBeLeftOut: boolean): Html {
  const t = messages.consent;
  const { title, about, power } = describeScope(messages, scope);
  const shade = power === 'danger' ? 'bad' : power === 'write' ? 'warn' : 'good';
  const name = mayBeLeftOut
    ? html`<label class="check"><input type="checkbox" name="scope" value="${scope}" form="${FORM_ID}"${isAdministratorScope(scope) ? '' : html` checked`}><strong>${title}</strong></label>`
    : html`<strong>${title}</strong>`;
  return html`<li>${name}<span class="tags">${isNew ? html`<span class="tag good">${t.isNew}</span>` : ''}<span class="tag ${shade}">${t.powers[power]}</span></span><span class="hint">${about} <code>${scope}</code></span></li>`;
}

function renderTarget(messages: Messages, host: string): Html {
  const t = messages.consent;
  const isHere = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host);
  const isPunycode = host.includes('xn--');
  return html`<p class="notice${isPunycode ? ' warn' : ''}">${t.leadsTo} <strong>${host}</strong>${isHere ? ` (${t.loopback})` : ''}${messages.marks.stop}${isPunycode ? t.punycode : ''}</p>`;
}
