/** Renders the page on which the user of a device types its code. */
import { html } from 'hono/html';
import { type Mistake, renderCsrf, renderField, renderMistake } from '../../pages/elements.ts';
import { type Html, renderFocusPage } from '../../pages/layout.ts';
import type { Messages } from '../messages/messages.ts';

export interface DeviceView {
  readonly csrfToken: string;
  /** Where the form posts to, with `csrf_token` and `user_code`. */
  readonly action: string;
  /** The initial value of the field, for example from `verification_uri_complete`. */
  readonly userCode: string;
  readonly mistake?: Mistake | undefined;
}

/** Renders the form for the code that a device shows (RFC 8628 §3.3). */
export function renderDevicePage(messages: Messages, view: DeviceView): Html {
  const t = messages.device;
  const content = html`<div class="card stack">
<h1>${t.title}</h1>
${renderMistake(messages, view.mistake, { user_code: t.code })}
<p class="soft">${t.lead}</p>
<form method="post" action="${view.action}" class="stack">
${renderCsrf(view.csrfToken)}
${renderField({ name: 'user_code', label: t.code, value: view.userCode, autocomplete: 'off', className: 'one-time', hasFocus: !view.mistake, mistake: view.mistake })}
<button class="full">${t.submit}</button>
</form>
<p class="small soft">${t.check}</p>
</div>`;
  return renderFocusPage(messages, { title: t.title, content, withPageScript: true });
}

/** Renders the last page in the browser; the device continues on its own. */
export function renderDeviceDonePage(messages: Messages, outcome: 'approved' | 'denied'): Html {
  const t = messages.device;
  const [title, lead] = outcome === 'approved' ? [t.approved, t.approvedLead] : [t.denied, t.deniedLead];
  const content = html`<div class="card stack"><h1>${title}</h1><p>${lead}</p></div>`;
  return renderFocusPage(messages, { title, content });
}
