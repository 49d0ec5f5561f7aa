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
  const inner = [schema.items, findValues(schema)].filter((node) => node !== undefined);
  return html`${own}${[...parts, ...inner].map((part) => renderSchema(texts, part, depth + 1))}`;
}

function renderFields(texts: ReferenceTexts, { properties = {}, required = [] }: SchemaNode, depth: number): Html {
  return html`<dl class="fields">${Object.entries(properties).map(
    ([name, field]) =>
      html`<dt><code>${name}</code> <span class="soft small">${renderType(texts, field)}${required.includes(name) ? `${texts.marks.comma}${texts.required}` : ''}</span></dt><dd><span lang="en">${field.description ?? ''}</span>${renderSchema(texts, field, depth + 1)}</dd>`,
  )}</dl>`;
}

function findValues({ additionalProperties }: SchemaNode): SchemaNode | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}

/** The type in words with its limits and its default. */
export function renderType(texts: ReferenceTexts, schema: SchemaNode): Html {
  const limits = listLimits(texts, schema).map((limit) => html`${texts.marks.comma}${limit}`);
  return html`${renderKind(texts, schema)}${limits}`;
}

/** A link if it is a named schema. */
function renderKind(texts: ReferenceTexts, schema: SchemaNode): Html | string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.items !== undefined) return html`${texts.arrayOf} ${renderType(texts, schema.items)}`;
  if (schema.enum !== undefined) return schema.enum.map(String).join(' | ');
  const values = findValues(schema);
  if (values !== undefined && Object.keys(values).length > 0)
    return html`${texts.valuesOf} ${renderType(texts, values)}`;
  const parts = schema.allOf ?? schema.anyOf ?? schema.oneOf;
  if (parts !== undefined)
    return html`${parts.map((part, index) => html`${index === 0 ? '' : ` ${schema.allOf ? texts.and : texts.or} `}${renderType(texts, part)}`)}`;
  return [schema.type ?? texts.any].flat().join(` ${texts.or} `);
}

function listLimits(texts: ReferenceTexts, schema: SchemaNode): (Html | string)[] {
  const { format, pattern, minimum, maximum, exclusiveMinimum, minLength, maxLength, minItems, maxItems } = schema;
  const length = describeRange(texts, minLength, maxLength);
  const count = describeRange(texts, minItems, maxItems);
  return [
    ...(format === undefined ? [] : [html`<code>${format}</code>`]),
    // The pattern of a format is long and adds nothing.
    ...(pattern === undefined || format !== undefined ? [] : [html`<code>${pattern}</code>`]),
    ...(exclusiveMinimum === undefined ? [] : [texts.above(texts.format.count(exclusiveMinimum))]),
    describeRange(texts, minimum, maximum),
    length && texts.characters(length),
    count && texts.items(count),
    ...(schema.default === undefined ? [] : [html`${texts.preset} <code>${JSON.stringify(schema.default)}</code>`]),
  ].filter((limit) => limit !== '');
}

/** Empty without limits. */
function describeRange(texts: ReferenceTexts, least: number | undefined, most: number | undefined): string {
  const { count } = texts.format;
  if (least === undefined) return most === undefined ? '' : texts.atMost(count(most));
  return most === undefined ? texts.atLeast(count(least)) : texts.between(count(least), count(most));
}
