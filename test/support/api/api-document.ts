/** Checks answers of the service against docs/reference/openapi.json: each status, type and body must be described. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

// biome-ignore lint/suspicious/noExplicitAny: the document is data that tests check
export type Node = any;

export interface DescribedOperation {
  readonly operationId: string;
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly item: Node;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch'];
const FORMATS = {
  'date-time': (text: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text)),
  uri: (text: string) => URL.canParse(text),
  url: (text: string) => URL.canParse(text),
  email: (text: string) => /^[^@\s]+@[^@\s]+$/.test(text),
};

export const apiDocument: Node = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));

export const describedOperations: readonly DescribedOperation[] = Object.entries<Node>(apiDocument.paths).flatMap(
  ([path, methods]) =>
    METHODS.filter((method) => method in methods).map((method) => ({
      operationId: methods[method].operationId,
      method: method.toUpperCase(),
      path,
      item: methods[method],
    })),
);

/** Fields that a schema does not name are refused, so that the document names every one. */
function createValidators(): (schema: Node) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: FORMATS });
  const components = structuredClone(apiDocument.components);
  const parts = new Set(
    JSON.stringify(apiDocument)
      .match(/"allOf":\[[^\]]*\]/g)
      ?.flatMap(listRefs) ?? [],
  );
  for (const [name, schema] of Object.entries<Node>(components.schemas)) closeObjects(schema, parts.has(name));
  ajv.addSchema({ $id: 'https://document/', components });
  return (schema) => {
    const own = structuredClone(schema);
    closeObjects(own, false);
    return ajv.compile(JSON.parse(JSON.stringify(own).replaceAll('"#/', '"https://document/#/')));
  };
}

function listRefs(text: string): string[] {
  return [...text.matchAll(/schemas\/(\w+)"/g)].map(([, name]) => name ?? '');
}

function closeObjects(schema: Node, isPart: boolean): void {
  if (typeof schema !== 'object' || schema === null) return;
  const isObject = schema.properties !== undefined || schema.allOf !== undefined;
  if (isObject && !isPart && schema.additionalProperties === undefined) schema.unevaluatedProperties = false;
  for (const [word, value] of Object.entries<Node>(schema)) {
    if (word === 'allOf') for (const part of value) closeObjects(part, true);
    else if (word === 'properties') for (const field of Object.values(value)) closeObjects(field, false);
    else if (word === 'anyOf' || word === 'oneOf') for (const one of value) closeObjects(one, isObject);
    else if (word === 'items' || word === 'additionalProperties') closeObjects(value, false);
  }
}

const compile = createValidators();
const validators = new Map<Node, ValidateFunction>();

/** Throws unless the document describes this answer of the operation. */
export async function checkAnswer({ operationId, item }: DescribedOperation, response: Response): Promise<void> {
  const described = item.responses[response.status] ?? item.responses.default;
  const place = `${operationId} ${response.status}`;
  assert.ok(described !== undefined && (item.responses.default !== described || response.status >= 400), place);
  const text = await response.text();
  const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? '';
  if (described.content === undefined) {
    assert.ok(text === '' || !type.includes('json'), `${place} has a body: ${text.slice(0, 200)}`);
    return;
  }
  const media = described.content[type];
  assert.ok(media !== undefined, `${place} is ${type}, not ${Object.keys(described.content).join(' or ')}`);
  if (!type.includes('json')) return;
  const validate = validators.get(media) ?? compile(media.schema);
  validators.set(media, validate);
  if (validate(JSON.parse(text))) return;
  const faults = validate.errors?.map(({ instancePath, message, params }) => [instancePath, message, params]);
  assert.fail(`${place} is not as the document says: ${JSON.stringify(faults)}\n${text.slice(0, 2000)}`);
}
