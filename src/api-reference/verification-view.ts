/** Renders the programs with which a receiver verifies deliveries, in six languages. */
import { readFileSync } from 'node:fs';
import { html } from 'hono/html';
import type { Html } from '../pages/layout.ts';
import type { ReferenceTexts } from './texts.ts';

interface Programs {
  readonly programs: readonly { readonly name: string; readonly language: string; readonly code: string }[];
  /** Checks `webhook-signature`. */
  readonly standard: string;
}

/** Made by `npm run generate` from docs/how-to/verify-deliveries.md. */
const { programs, standard } = JSON.parse(
  readFileSync(new URL('verification-programs.json', import.meta.url), 'utf8'),
) as Programs;

export const VERIFICATION_ID = 'verify';

export function renderVerification(texts: ReferenceTexts): Html {
  const t = texts.verification;
  return html`<section><h2 id="${VERIFICATION_ID}">${t.title}</h2><p>${t.lead}</p><p>${t.headers}</p><p class="soft">${t.usage}</p>
${programs.map(({ name, code }) => renderProgram(html`<span lang="en">${name}</span>`, code))}
<h3>${t.standard}</h3><p>${t.standardLead}</p>${renderProgram(html`<span lang="en">JavaScript (Node)</span>`, standard)}</section>`;
}

function renderProgram(name: Html, code: string): Html {
  return html`<details class="program"><summary>${name}</summary><pre tabindex="0" data-copy><code>${code}</code></pre></details>`;
}
