/** Renders a schema of the API as a list of fields. References lead to the schema's own entry. */
import { html } from 'hono/html';
import type { Html } from '../pages/layout.ts';
import type { SchemaNode } from './reference-document.ts';
import type { ReferenceTexts } from './texts.ts';

const MAX_DEPTH = 6;

export function renderSchema(texts: ReferenceTexts, schema: SchemaNode, depth = 0): Html | string {
  if (depth > MAX_DEPTH) return '';
  const fields = Object.entries(schema.properties ?? {});
  const own = fields.length === 0 ? '' : renderFields(texts, schema, depth);
  const parts = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const items = schema.items === undefined ? [] : [schema.items];
  return html`${own}${[...parts, ...items].map((part) => renderSchema(texts, part, depth + 1))}`;
}

function renderFields(texts: ReferenceTexts, { properties = {}, required = [] }: SchemaNode, depth: number): Html {
  return html`<dl class="fields">${Object.entries(properties).map(
    ([name, field]) =>
      html`<dt><code>${name}</code> <span class="soft small">${renderType(texts, field)}${required.includes(name) ? `${texts.marks.comma}${texts.required}` : ''}</span></dt><dd><span lang="en">${field.description ?? ''}</span>${renderSchema(texts, field, depth + 1)}</dd>`,
  )}</dl>`;
}

/** The type in words, with a link where it is a schema of its own. */
export function renderType(texts: ReferenceTexts, schema: SchemaNode): Html | string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.items !== undefined) return html`${texts.arrayOf} ${renderType(texts, schema.items)}`;
  if (schema.enum !== undefined) return schema.enum.map(String).join(' | ');
  const parts = schema.allOf ?? schema.anyOf ?? schema.oneOf;
  if (parts !== undefined)
    return html`${parts.map((part, index) => html`${index === 0 ? '' : ` ${schema.allOf ? texts.and : texts.or} `}${renderType(texts, part)}`)}`;
  return [schema.type ?? texts.any].flat().join(` ${texts.or} `);
}
