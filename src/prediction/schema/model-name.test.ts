import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModelName, parseModelId } from './model-name.ts';

for (const name of [
  'qwen3-32b',
  'meta-llama/Llama-3.1-8B',
  'Qwen/Qwen3:fp8',
  '通义 千问',
  'text-bison@001',
  'x'.repeat(256),
])
  test(`"${name}" may name a target model`, () => {
    assert.doesNotThrow(() => checkModelName(name));
  });

for (const name of ['', ' ', 'a\nb', ' a', 'a ', 'a\u202eb', 'a\u2028b', 'x'.repeat(257), 'é'.repeat(129)])
  test(`${JSON.stringify(name)} may not, and the refusal says what may`, () => {
    assert.throws(() => checkModelName(name), {
      code: 'invalid',
      message: /1 to 256 bytes, letters, digits, punctuation and spaces within, but no control character/,
    });
  });

const ids: [id: string, name: string, version: number | undefined][] = [
  ['m', 'm', undefined],
  ['m@17', 'm', 17],
  ['text-bison@001', 'text-bison@001', undefined],
  ['text-bison@001@3', 'text-bison@001', 3],
  ['claude@20240620@3', 'claude@20240620', 3],
  ['@m', '@m', undefined],
  ['@1', '@1', undefined],
  ['m@', 'm@', undefined],
  ['m@@2', 'm@', 2],
  ['m@1.5', 'm@1.5', undefined],
  ['m@1000000000000000', 'm@1000000000000000', undefined],
];
for (const [id, name, version] of ids)
  test(`parseModelId() of "${id}" has the name "${name}" and ${version ?? 'no'} version`, () =>
    assert.deepEqual(parseModelId(id), { name, version }));
