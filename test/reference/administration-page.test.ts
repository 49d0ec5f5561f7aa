/** The page of the administration API names the parameters that its operations have. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema?: { readonly enum?: readonly string[] };
}

type Operations = Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>;

const ROOT = '/api/admin/v1';
/** The page explains these once, for all lists. */
const PAGING = ['after', 'before', 'limit'];
const page = readFileSync('docs/reference/administration-api.md', 'utf8');
const rows = [...page.matchAll(/^\| (`[^|]+) \|(.*)$/gm)].map(([, paths = '', rest = '']) => ({
  paths: [...paths.matchAll(/`(?:[A-Z, ]+ )?([^`]+)`/g)].map(([, path = '']) => path),
  words: new Set([...rest.matchAll(/`([^`=]+)(?:=[^`]*)?`/g)].map(([, word]) => word)),
}));

function findRow(path: string) {
  const exact = rows.find(({ paths }) => paths.includes(path));
  return exact ?? rows.find(({ paths }) => paths.some((one) => one.startsWith('…') && path.endsWith(one.slice(1))));
}

function listQuestions(): (readonly [path: string, parameters: readonly Parameter[]])[] {
  const { paths } = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8')) as {
    readonly paths: Readonly<Record<string, Operations>>;
  };
  return Object.entries(paths)
    .filter(([path, operations]) => path.startsWith(ROOT) && operations.get !== undefined)
    .map(([path, { get }]) => [
      path.slice(ROOT.length),
      (get?.parameters ?? []).filter((parameter) => parameter.in === 'query' && !PAGING.includes(parameter.name)),
    ]);
}

const hasGeneralRule = page.includes(
  '\nWith `repository`, a webhook is found only if it belongs to that repository.\n',
);

for (const [path, parameters] of listQuestions())
  test(`the row of GET ${path} names its parameters, and all or none of the values of each`, () => {
    const row = findRow(path);
    assert.ok(row, 'no row');
    const isKnown = (name: string) =>
      row.words.has(name) || (hasGeneralRule && name === 'repository' && path.startsWith('/hooks/{id}'));
    assert.deepEqual(
      parameters.filter(({ name }) => !isKnown(name)).map(({ name }) => name),
      [],
    );
    for (const { name, schema } of parameters) {
      const values = schema?.enum ?? [];
      const missing: readonly string[] = values.filter((value) => !row.words.has(value));
      if (missing.length < values.length) assert.deepEqual(missing, [], name);
    }
  });

test('the operations of the administration API were found', () => assert.ok(listQuestions().length > 15));
