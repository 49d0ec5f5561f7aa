/** Renders the body of a delivery, and its request as a curl command. */
import { html } from 'hono/html';
import type { Html } from '../../pages/layout.ts';
import type { ConsoleTexts } from '../texts/texts.ts';
import type { DeliveryDetail } from './hook-views.ts';

/** In characters. A larger body is shown unformatted, and the curl command reads it from a file. */
const MAX_SHOWN = 128 * 1024;
/** The delivery log stores this text in place of a secret. */
const REDACTED = '[redacted]';
/** Headers that curl sets itself. */
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

/** Returns undefined if the body is not JSON, or formatting would change it: numbers above 2^53 lose digits. */
function formatJson(text: string): string | undefined {
  if (text.length > MAX_SHOWN) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return JSON.stringify(value) === text ? JSON.stringify(value, undefined, 2) : undefined;
  } catch {
    return undefined;
  }
}

/** Writes a command that is safe to paste into a POSIX shell: all untrusted parts are in single quotes. */
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
