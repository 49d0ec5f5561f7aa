/** Every operation, field and delivery of docs/reference/openapi.json says what a reader and a generator of clients need. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Failure } from '../../src/errors.ts';
import { replyToError } from '../../src/http/failure-response.ts';
import { createLog } from '../../src/telemetry/log.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is data that this test checks
type Node = any;

const document: Node = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));
const METHODS = ['get', 'put', 'post', 'delete', 'patch'];

interface Operation {
  readonly key: string;
  readonly item: Node;
}

function listOperations(paths: Node): Operation[] {
  return Object.entries<Node>(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => method in methods).map((method) => ({
      key: `${method.toUpperCase()} ${path}`,
      item: methods[method],
    })),
  );
}

function listMedia({ item }: Operation): [place: string, media: Node][] {
  const holders = [['request', item.requestBody], ...Object.entries(item.responses)] as [string, Node][];
  return holders.flatMap(([place, holder]) =>
    Object.entries(holder?.content ?? {}).map(([type, media]) => [`${place} ${type}`, media] as [string, Node]),
  );
}

/** Lists what an operation lacks. */
function findGaps(operation: Operation): string[] {
  const { item } = operation;
  const missing = ['operationId', 'summary', 'tags', 'security'].filter((name) => item[name] === undefined);
  const errors = Object.entries<Node>(item.responses).filter(([status]) => /^(default|[45])/.test(status));
  const bare = errors.filter(([, answer]) => answer.content === undefined).map(([status]) => `body of ${status}`);
  const parameters = (item.parameters ?? [])
    .filter((one: Node) => one.$ref === undefined && !one.description)
    .map(({ name }: Node) => `description of parameter ${name}`);
  const examples = listMedia(operation)
    .filter(([, media]) => media.example === undefined && media.examples === undefined)
    .map(([place]) => `example of ${place}`);
  const gaps = [...missing, ...(errors.length === 0 ? ['an error answer'] : []), ...bare, ...parameters, ...examples];
  return gaps.map((gap) => `${operation.key} lacks ${gap}`);
}

function findUndescribed(node: Node, place: string): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const own = Object.entries<Node>(node.properties ?? {})
    .filter(([, field]) => !field.description)
    .map(([name]) => `${place}.${name} has no description`);
  const below = Object.entries(node)
    .filter(([name]) => name !== 'example' && name !== 'examples')
    .flatMap(([name, value]) => findUndescribed(value, `${place}/${name}`));
  return [...own, ...below];
}

const operations = listOperations(document.paths);

test('every operation has a name, a summary, tags, security, error answers, and examples', () => {
  assert.ok(operations.length > 70);
  assert.deepEqual(operations.flatMap(findGaps), []);
});

/** A path without a name leads to nothing that could be missing; these say it of their body, their query or a setting. */
const MAY_FIND_NOTHING = [
  'GET /prediction/capacity',
  'POST /hermes.prediction.v1.PredictionService/Predict',
  'POST /prediction.v1.PredictionService/Predict',
  'POST /v1/traces',
];

test('404 is described only where a call can get it: a report makes its model known', () => {
  const found = operations.filter(({ key, item }) => !key.includes('{') && item.responses['404'] !== undefined);
  assert.deepEqual(found.map(({ key }) => key).sort(), MAY_FIND_NOTHING);
});

test('names of operations are unique and fit into programs', () => {
  const names = operations.map(({ item }) => item.operationId);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][A-Za-z0-9]*$/);
});

test('every required security scheme is described', () => {
  const schemes = Object.keys(document.components.securitySchemes);
  const used = operations.flatMap(({ item }) => item.security.flatMap((one: Node) => Object.keys(one)));
  assert.deepEqual(new Set(used), new Set(schemes));
});

test('every field is described', () => {
  assert.deepEqual(findUndescribed({ paths: document.paths, schemas: document.components.schemas }, ''), []);
});

test('every example fits its schema', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://document/', components: document.components });
  const misfits = operations.flatMap((operation) =>
    listMedia(operation)
      .filter(([place]) => place.includes('json') && !place.includes('jsonl'))
      .flatMap(([place, media]) => {
        const schema = JSON.parse(JSON.stringify(media.schema).replaceAll('"#/', '"https://document/#/'));
        return ajv.validate(schema, media.example) ? [] : [`${operation.key} ${place}: ${ajv.errorsText()}`];
      }),
  );
  assert.deepEqual(misfits, []);
});

test('no field of an example is the word that stands for any text', () => {
  const findBare = (value: unknown, place: string): string[] => {
    if (typeof value === 'object' && value !== null)
      return Object.entries(value).flatMap(([name, part]) => findBare(part, `${place}/${name}`));
    return /^text(t*)$/.test(String(value)) ? [place] : [];
  };
  assert.deepEqual(findBare({ a: ['text', 'textile'] }, ''), ['/a/0']);
  const bare = operations.flatMap((operation) =>
    listMedia(operation).flatMap(([place, { example }]) => findBare(example, `${operation.key} ${place}`)),
  );
  assert.deepEqual(bare, []);
});

test('the example of each kind of refusal is one that the service sends', () => {
  const bare = listOperations(document.paths).flatMap((operation) =>
    listMedia(operation)
      .filter(([, { schema }]) => /\/(Problem|Refusal|OAuthError|RpcError)$/.test(schema.$ref ?? ''))
      .filter(([, { example }]) => Object.values(example).includes('text'))
      .map(([place]) => `${operation.key}: ${place}`),
  );
  assert.deepEqual(bare, []);
});

const OAUTH_ERRORS_OF: Readonly<Record<string, RegExp>> = {
  400: /^(invalid_grant|invalid_request|invalid_scope|unsupported_token_type)$/,
  401: /^(invalid_client|invalid_token)$/,
  403: /^insufficient_scope$/,
  429: /^temporarily_unavailable$/,
};
const RPC_ERRORS_OF: Readonly<Record<string, readonly [code: number, name: string]>> = {
  400: [3, 'invalid_argument'],
  401: [16, 'unauthenticated'],
  404: [5, 'not_found'],
  413: [8, 'resource_exhausted'],
  415: [3, 'invalid_argument'],
  503: [14, 'unavailable'],
};

/** Returns true if a refusal may come with its status. */
function fitsStatus(component: string, status: string, example: Node): boolean {
  if (component === 'OAuthError') return OAUTH_ERRORS_OF[status]!.test(example.error);
  if (component === 'RpcError') return RPC_ERRORS_OF[status]?.[1] === example.code;
  if (component === 'RpcStatus') return RPC_ERRORS_OF[status]?.[0] === example.code;
  return component !== 'Problem' || Number(status) === example.status;
}

test('the example of a refusal has the code that comes with its status', () => {
  const refusals = operations.flatMap((operation) =>
    listMedia(operation).flatMap(([place, { schema, example }]) => {
      const status = /^[45]\d\d/.exec(place)?.[0];
      const component = String(schema.$ref).split('/').at(-1)!;
      return status === undefined ? [] : [{ key: `${operation.key} ${place}`, component, status, example }];
    }),
  );
  assert.ok(refusals.length > 40);
  const wrong = refusals.filter(({ component, status, example }) => !fitsStatus(component, status, example));
  assert.deepEqual(
    wrong.map(({ key }) => key),
    [],
  );
  const tokens = refusals.filter(({ key }) => key.startsWith('POST /oauth/token'));
  assert.deepEqual(
    tokens.map(({ status, example }) => [status, example.error]),
    [
      ['400', 'invalid_grant'],
      ['401', 'invalid_client'],
      ['429', 'temporarily_unavailable'],
    ],
  );
});

test('each delivery shows the golden bodies of its profile', () => {
  const events = globSync('src/webhooks/profiles/fixtures/events/*.json');
  const profiles = ['gitcode', 'gitee', 'github', 'gitlab'];
  for (const profile of profiles)
    for (const path of events) {
      const { kind } = JSON.parse(readFileSync(path, 'utf8'));
      const name = basename(path, '.json');
      const { examples } = document.webhooks[`${profile}.${kind}`].post.requestBody.content['application/json'];
      const golden = JSON.parse(readFileSync(`src/webhooks/profiles/fixtures/${profile}/${name}.json`, 'utf8'));
      assert.deepEqual(examples[name].value, golden);
    }
  assert.equal(document.servers.length, 1);
});

test('the checks can fail', () => {
  assert.equal(findGaps({ key: 'GET /a', item: { responses: { 200: {} } } }).length, 5);
  assert.deepEqual(findUndescribed({ properties: { a: {} } }, 'A'), ['A.a has no description']);
});

test('the example of a token says when it was made as the service does, with milliseconds', () => {
  const { example } = document.paths['/oauth/token'].post.responses['200'].content['application/json'];
  assert.equal(example.created_at, new Date(example.created_at).toISOString());
});

for (const path of ['/oauth/revoke', '/oauth/introspect'])
  test(`the example of ${path} names the kind of its token`, () => {
    const { example } = Object.values<Node>(document.paths[path].post.requestBody.content)[0];
    assert.deepEqual([example.token, example.token_type_hint], ['tvt_a_example', 'access_token']);
  });

test('an operation of the administration API has a JSON body only for its fields, required if one of them is', () => {
  const bodies = listOperations(document.paths).flatMap(({ key, item }) => {
    const schema = item.requestBody?.content['application/json']?.schema;
    return key.includes('/api/admin/v1') && schema !== undefined ? [{ key, schema, body: item.requestBody }] : [];
  });
  assert.ok(bodies.length > 15);
  for (const { key, schema, body } of bodies) {
    assert.notDeepEqual(schema.properties, {}, key);
    assert.equal(body.required, (schema.required ?? []).length > 0, key);
    assert.equal(schema.additionalProperties, false, key);
  }
});

test('every field of a problem is described', () => {
  const failure = new Failure('too_many', 'Try again later', { field: 'q', retryAfterSeconds: 3 });
  const refused = { traceId: '0', log: createLog('silent'), header: () => undefined };
  const fields = Object.keys(JSON.parse(String(replyToError(failure, 'problem', refused).body)));
  const described = document.components.schemas.Problem.properties;
  assert.deepEqual(
    fields.filter((name) => !(name in described)),
    [],
  );
});
