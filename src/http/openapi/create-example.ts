/** Makes an example value of a JSON Schema for the OpenAPI document. */
import type { Json } from './api-descriptions.ts';
import type { FindWord, Place } from './find-description.ts';

/** An object of the document. It is data, so its fields are checked where they are read. */
// biome-ignore lint/suspicious/noExplicitAny: OpenAPI nests schemas without bound
export type Schema = any;

export interface ExampleContext {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly findExample: FindWord<Json>;
}

const MAX_DEPTH = 8;

export function createExample(schema: Schema, place: Place, context: ExampleContext, depth = 0): Json {
  if (depth > MAX_DEPTH || schema === undefined) return null;
  const own = schema.example ?? schema.examples?.[0] ?? schema.const ?? schema.enum?.[0];
  if (own !== undefined) return own as Json;
  if (schema.$ref !== undefined) {
    const owner = String(schema.$ref).split('/').at(-1) ?? '';
    const place = { owner, name: owner, parent: owner };
    return context.findExample(place) ?? createExample(context.schemas[owner], place, context, depth + 1);
  }
  const alternative = (schema.oneOf ?? schema.anyOf)?.[0];
  if (alternative !== undefined) return createExample(alternative, place, context, depth + 1);
  if (schema.allOf !== undefined)
    return Object.assign({}, ...schema.allOf.map((one: Schema) => createExample(one, place, context, depth + 1)));
  return createTyped(schema, place, context, depth);
}

function createTyped(schema: Schema, place: Place, context: ExampleContext, depth: number): Json {
  const types: readonly string[] = [schema.type].flat();
  const [type] = types;
  if (type === 'object' || schema.properties !== undefined) return createObject(schema, place, context, depth);
  const known = context.findExample(place);
  if (known !== undefined && types.some((one) => isOfType(known, one))) return known;
  if (type === 'array') return schema.items ? [createExample(schema.items, place, context, depth + 1)] : [];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return clampNumber(schema);
  return type === 'string' ? createText(schema, place) : null;
}

function createObject(schema: Schema, { owner, name }: Place, context: ExampleContext, depth: number): Json {
  const entries = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  // Only requests have `readOnly` fields, which change nothing.
  const shown = entries.filter(([, { readOnly }]) => readOnly !== true);
  return Object.fromEntries(
    shown.map(([field, value]) => [
      field,
      createExample(value, { owner, name: field, parent: name }, context, depth + 1),
    ]),
  );
}

function isOfType(value: Json, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function clampNumber({ minimum = 1, exclusiveMinimum, maximum }: Schema): number {
  const low = exclusiveMinimum === undefined ? Math.max(1, minimum) : Math.max(1, exclusiveMinimum + 1);
  return maximum === undefined ? low : Math.min(low, maximum);
}

const TEXT_OF_FORMAT: Readonly<Record<string, string>> = {
  'date-time': '2026-03-01T12:00:00Z',
  date: '2026-03-01',
  uri: 'https://example.com',
  url: 'https://example.com',
  email: 'ada@example.com',
  binary: '(bytes)',
  uuid: '607294e6-0e65-417f-a42b-3edd70de32ee',
};

function createText({ format, minLength = 0, maxLength }: Schema, { name }: Place): string {
  const ofName = name.endsWith('_at') ? TEXT_OF_FORMAT['date-time'] : undefined;
  const text = TEXT_OF_FORMAT[format] ?? ofName ?? 'text'.padEnd(minLength, 't');
  return maxLength === undefined ? text : text.slice(0, maxLength);
}
