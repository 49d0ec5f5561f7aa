import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure } from '../errors.ts';
import { checkQuery, JSON_MAX_DEPTH, MAX_PAIRS, parseJson, parsePairs } from './parser-limits.ts';

const isInvalid = (error: Failure) => error.code === 'invalid';

test('parsePairs() takes as many pairs as allowed and refuses one more', () => {
  assert.equal(parsePairs(Array(MAX_PAIRS).fill('a').join('&')).size, MAX_PAIRS);
  assert.throws(
    () =>
      parsePairs(
        Array(MAX_PAIRS + 1)
          .fill('a')
          .join('&'),
      ),
    isInvalid,
  );
});

test('parsePairs() looks at no more of a text than the pairs that it allows', () => {
  let looks = 0;
  const endless = {
    indexOf: (_: string, from: number) => {
      looks++;
      return from + 1;
    },
  } as unknown as string;
  assert.throws(() => parsePairs(endless), isInvalid);
  assert.equal(looks, MAX_PAIRS);
});

test('checkQuery() counts behind the question mark alone', () => {
  checkQuery(`/${'&'.repeat(1000)}`);
  checkQuery(`/${'&'.repeat(1000)}?a&b`);
  assert.throws(() => checkQuery(`/?${'&'.repeat(MAX_PAIRS)}`), isInvalid);
});

const nest = (depth: number, leaf = '1') => '[{"a":'.repeat(depth / 2) + leaf + '}]'.repeat(depth / 2);

test('parseJson() reads what is nested as deeply as allowed, brackets in strings aside', () => {
  const leaf = JSON.stringify(`${'['.repeat(1000)}"{\\`);
  assert.deepEqual(parseJson(nest(JSON_MAX_DEPTH, leaf)), JSON.parse(nest(JSON_MAX_DEPTH, leaf)));
  assert.deepEqual(parseJson('[[],[],{}]'.padEnd(1000)), [[], [], {}]);
});

test('parseJson() refuses what is nested more deeply, and is undefined for what is not JSON', () => {
  assert.throws(() => parseJson(nest(JSON_MAX_DEPTH + 2)), isInvalid);
  assert.throws(() => parseJson('['.repeat(500_000)), isInvalid);
  for (const text of ['', '{', '"\\', 'nil', ']]]]']) assert.equal(parseJson(text), undefined);
});
