import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** What a bench must have in its text, or its figures are not those of a service in use. */

const benches = globSync('bench/**/*.ts').map((path) => ({ path, text: readFileSync(path, 'utf8') }));
const IMPORT = /^.* from '.*';$/gm;

function listPaths(test: (text: string) => boolean): string[] {
  return benches.flatMap(({ path, text }) => (test(text) ? [path] : []));
}

const startsServer = (text: string) =>
  /(spawn|fork|startServer|startOnCore)\(/.test(text) && /(main|server|engine)\.ts[`']/.test(text.replace(IMPORT, ''));

test('each server that a bench starts has the flags of Node that bin/trivet.js gives', () => {
  assert.ok(listPaths(startsServer).length > 4);
  assert.deepEqual(
    listPaths((text) => startsServer(text) && !/NODE_FLAGS|nodeOptions/.test(text)),
    [],
  );
  assert.deepEqual(
    listPaths((text) => text.includes('--heap-growing-percent')),
    [],
    'flags that a bench copies change alone',
  );
});

test('each PostgreSQL that a bench starts is durable and has the settings of a new installation', () => {
  const starts = benches.flatMap(({ text }) => text.match(/startPostgresCluster\([^)]*\)/g) ?? []);
  assert.ok(starts.length > 4);
  assert.deepEqual([...new Set(starts)], ['startPostgresCluster(NEW_POSTGRES)']);
});
