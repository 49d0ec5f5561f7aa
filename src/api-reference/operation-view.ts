/**
 * Renders one operation of the API: a line that opens to its parameters, bodies and answers. The id is on an element inside, so that a
 * browser opens the entry that a link leads to.
 */
import { html } from 'hono/html';
import type { Html } from '../pages/layout.ts';
import type { ContentNode, MediaNode, OperationNode, ParameterNode, ShownOperation } from './reference-document.ts';
import { renderSchema, renderType } from './schema-view.ts';
import type { ReferenceTexts } from './texts.ts';

/** `security`: shown instead of the tokens that the operation takes. */
export function renderOperation(
  texts: ReferenceTexts,
  { method, path, operation }: ShownOperation,
  security: Html | string = listSecurity(texts, operation),
): Html {
  const { description, parameters = [], requestBody, responses } = operation;
  return html`<details class="operation">
<summary><span class="method">${method}</span> <code>${path}</code> <span class="soft" lang="en">${operation.summary}</span></summary>
<div id="${operation.operationId}">${description === undefined ? '' : html`<p lang="en">${description}</p>`}
<p class="small soft">${texts.takes}${texts.marks.colon}${security}</p>
${parameters.length === 0 ? '' : renderParameters(texts, parameters)}
${requestBody === undefined ? '' : renderContent(texts, texts.body, requestBody)}
${Object.entries(responses).map(([status, answer]) => renderContent(texts, texts.answer(status), answer))}</div>
</details>`;
}

function listSecurity(texts: ReferenceTexts, { security }: OperationNode): string {
  const ways = security.map((way) =>
    Object.entries(way)
      .map(([scheme, scopes]) => [scheme, ...scopes].join(' '))
      .join(', '),
  );
  return ways.length === 0 ? texts.anonymous : ways.map((way) => way || texts.anonymous).join('; ');
}

function renderParameters(texts: ReferenceTexts, parameters: readonly ParameterNode[]): Html {
  return html`<h3>${texts.parameters}</h3><dl class="fields">${parameters.map(
    ({ name, in: place, required, description, example, schema = {} }) =>
      html`<dt><code>${name}</code> <span class="soft small">${place}, ${renderType(texts, schema)}${required ? `${texts.marks.comma}${texts.required}` : ''}</span></dt><dd><span lang="en">${description ?? ''}</span>${example === undefined ? '' : html` <code>${String(example)}</code>`}</dd>`,
  )}</dl>`;
}

function renderContent(texts: ReferenceTexts, title: string, { description, content = {} }: ContentNode): Html {
  return html`<h3>${title}</h3>${description === undefined ? '' : html`<p lang="en">${description}</p>`}${Object.entries(
    content,
  ).map(([type, media]) => renderMedia(texts, type, media))}`;
}

function renderMedia(texts: ReferenceTexts, type: string, { schema = {}, example, examples }: MediaNode): Html {
  const named = Object.entries(examples ?? {}).map(([name, { value }]) => [name, value] as const);
  const shown = example === undefined ? named : [[type, example] as const, ...named];
  return html`<p class="small soft"><code>${type}</code> ${renderType(texts, schema)}</p>${renderSchema(texts, schema)}${shown.map(
    ([name, value]) =>
      html`<details><summary>${texts.example(name)}</summary><pre tabindex="0"><code>${toText(type, value)}</code></pre></details>`,
  )}`;
}

/** Renders a value as it is sent: a form as its encoded fields. */
function toText(type: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (!type.includes('urlencoded')) return JSON.stringify(value, null, 2);
  const form = new URLSearchParams();
  for (const [name, field] of Object.entries(value ?? {})) form.append(name, String(field));
  return form.toString();
}
