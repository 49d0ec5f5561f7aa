/** The types of the OpenAPI document as `openapi-fetch` takes them, so that a client in the tests calls what it describes. */

// biome-ignore lint/suspicious/noExplicitAny: OpenAPI nests schemas without bound
type Node = any;

const METHODS = ['get', 'put', 'post', 'delete', 'patch'];
const PLACES = ['query', 'header', 'path', 'cookie'];

export function describeApiTypes(openApi: string): string {
  const document: Node = JSON.parse(openApi);
  const schemas = Object.entries<Node>(document.components.schemas);
  const paths = Object.entries<Node>(document.paths).map(([path, item]) => `${quote(path)}: ${printPath(item)}`);
  return `/** The types of docs/reference/openapi.json; made by scripts/generate.ts. */
${schemas.map(([name, schema]) => `export type ${name} = ${print(schema)};`).join('\n')}

export interface paths {
${paths.join(';\n')};
}
`;
}

function printPath(item: Node): string {
  const operations = METHODS.filter((method) => method in item).map(
    (method) => `${method}: ${printOperation(item[method])}`,
  );
  return `{ ${operations.join('; ')} }`;
}

function printOperation({ parameters = [], requestBody, responses }: Node): string {
  const places = PLACES.map((place) => printParameters(place, parameters));
  const body =
    requestBody === undefined ? 'requestBody?: never' : `requestBody${mark(requestBody)}: ${printContent(requestBody)}`;
  const answers = Object.entries<Node>(responses).map(([status, answer]) => `${status}: ${printContent(answer)}`);
  return `{ parameters: { ${places.join('; ')} }; ${body}; responses: { ${answers.join('; ')} } }`;
}

function printParameters(place: string, parameters: readonly Node[]): string {
  const own = parameters.filter((one) => one.in === place);
  if (own.length === 0) return `${place}?: never`;
  const fields = own.map((one) => `${quote(one.name)}${mark(one)}: ${print(one.schema)}`);
  return `${place}${own.some((one) => one.required) ? '' : '?'}: { ${fields.join('; ')} }`;
}

function mark({ required }: Node): string {
  return required === true ? '' : '?';
}

function printContent({ content }: Node): string {
  if (content === undefined) return '{ content?: never }';
  const types = Object.entries<Node>(content).map(([type, { schema }]) => `${quote(type)}: ${print(schema)}`);
  return `{ content: { ${types.join('; ')} } }`;
}

function print(schema: Node): string {
  if (schema === undefined || schema === true) return 'unknown';
  if (schema.$ref !== undefined) return String(schema.$ref).split('/').at(-1) ?? '';
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value: Node) => JSON.stringify(value)).join(' | ');
  if (schema.allOf !== undefined) return printAll(schema.allOf);
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives !== undefined) return alternatives.map((one: Node) => `(${print(one)})`).join(' | ');
  const types: string[] = Array.isArray(schema.type) ? schema.type : [schema.type];
  return types.map((type) => printTyped(type, schema)).join(' | ');
}

/** A schema part that only has a description adds nothing to the type. */
function printAll(parts: readonly Node[]): string {
  const types = parts.map(print).filter((type) => type !== 'unknown');
  return types.map((type) => `(${type})`).join(' & ');
}

function printTyped(type: string | undefined, schema: Node): string {
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string' || type === 'boolean' || type === 'null') return type;
  if (type === 'array') return `(${print(schema.items)})[]`;
  if (type === 'object' || schema.properties !== undefined) return printObject(schema);
  return 'unknown';
}

function printObject({ properties = {}, required = [], additionalProperties }: Node): string {
  const fields = Object.entries<Node>(properties).map(
    ([name, field]) => `${quote(name)}${required.includes(name) ? '' : '?'}: ${print(field)}`,
  );
  if (additionalProperties === undefined || additionalProperties === false) return `{ ${fields.join('; ')} }`;
  return `{ ${[...fields, `[name: string]: ${fields.length > 0 ? 'unknown' : print(additionalProperties)}`].join('; ')} }`;
}

function quote(name: string): string {
  return JSON.stringify(name);
}
