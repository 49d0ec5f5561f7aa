import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModelName } from './model-name.ts';

for (const name of ['qwen3-32b', 'meta-llama/Llama-3.1-8B', 'Qwen/Qwen3:fp8', '通义 千问', 'x'.repeat(200)])
  test(`"${name}" may name a target model`, () => {
    assert.doesNotThrow(() => checkModelName(name));
  });

for (const name of ['', ' ', 'a@1', 'a\nb', ' a', 'a ', 'a\u202eb', 'a\u2028b', 'x'.repeat(201)])
  test(`${JSON.stringify(name)} may not, and the refusal says what may`, () => {
    assert.throws(() => checkModelName(name), {
      code: 'invalid',
      message:
        /1 to 200 characters, letters, digits, punctuation and spaces within, but no "@" and no control character/,
    });
  });
