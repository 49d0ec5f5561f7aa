/** What the manifests set exists: a misspelt variable would be ignored in silence. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settings } from '../src/config/settings.ts';

/** Variables of the programs beside us. */
const OTHERS = new Set(['PREDICTION_SERVER_URL', 'TRAINING_SERVER_URL']);
const known = new Set(Object.values(settings).flatMap((section) => Object.values(section).map(({ env }) => env)));

function findUnknown(manifest: string): string[] {
  const names = [...manifest.matchAll(/name: ([A-Z][A-Z0-9_]+)\b/g)].map(([, name = '']) => name);
  return names.filter((name) => !known.has(name) && !OTHERS.has(name));
}

const manifests = globSync('deploy/kubernetes/**/*.yaml');

for (const file of manifests)
  test(`the variables in ${file} are settings`, () => assert.deepEqual(findUnknown(readFileSync(file, 'utf8')), []));

test('a variable that is not a setting is found', () => {
  assert.deepEqual(findUnknown('- { name: LLM_D_PROT, value: "8000" }'), ['LLM_D_PROT']);
  assert.ok(manifests.length >= 3);
});
