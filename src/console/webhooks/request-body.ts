/** Renders the body of a delivery, and its request as a curl command. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { DeliveryDetail } from './hook-views.ts';

/** A larger body is shown as it is, and left out of the command. */
const MAX_SHOWN = 128 * 1024;
/** The text that the log has in place of a secret. */
const REDACTED = '[redacted]';
/** Set by curl itself. */
const OWN_HEADERS = /^(host|content-length|connection|transfer-encoding)$/i;

export function renderBody(texts: ConsoleTexts, delivery: DeliveryDetail, url: string): Html {
  const t = texts.deliveries;
  const { request_body: body } = delivery;
  const pretty = formatJson(body);
  return html`<section class="card stack" aria-labelledby="body"><h2 id="body">${t.body}</h2><p class="soft">${t.bodyLead}</p>
<pre data-copy>${pretty ?? body}</pre>
${pretty === undefined ? '' : html`<details><summary>${t.asSent}</summary><pre data-copy>${body}</pre></details>`}
<details><summary>${t.asCurl}</summary><p class="hint">${t.curlHint}</p><pre data-copy>${writeCurl(delivery, url)}</pre></details></section>`;
}

/** Undefined when it is no JSON, or would not say the same: numbers beyond 2^53 lose digits. */
function formatJson(text: string): string | undefined {
  if (text.length > MAX_SHOWN) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, undefined, 2) : undefined;
  } catch {
    return undefined;
  }
}

/** Safe to paste into a POSIX shell: every part from outside is in single quotes. */
export function writeCurl({ attempt_log, request_body: body }: DeliveryDetail, url: string): string {
  const headers = Object.entries(attempt_log.at(-1)?.request_headers ?? { 'Content-Type': 'application/json' });
  const kept = headers.filter(([name, value]) => !OWN_HEADERS.test(name) && value !== REDACTED);
  const data = body.length > MAX_SHOWN ? "--data-binary '@body.json'" : `--data-binary ${quote(body)}`;
  const options = kept.map(([name, value]) => `-H ${quote(`${name}: ${[value].flat().join(', ')}`)}`);
  return [`curl -X POST ${quote(url)}`, ...options, data].join(' \\\n  ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
