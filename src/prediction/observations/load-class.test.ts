import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createInputDraft } from './event-draft.ts';
import { describeLoadClass, loadClassOf } from './load-class.ts';

const idle = { ...createInputDraft(), inputTokenLength: 100 };

test('a load class is chosen by the range of each metric', () => {
  const ranges = { waiting: '0-1', kv_cache: '0-0.25', prefix: '0-0.05', length: '0-256' };
  assert.deepEqual(describeLoadClass(loadClassOf(idle)), ranges);
  const busy = { ...idle, numRequestWaiting: 9, kvCacheUsage: 0.9, prefixCacheScore: 0.3, inputTokenLength: 300 };
  const others = { waiting: '8-64', kv_cache: '0.85+', prefix: '0.05-0.6', length: '256-2048' };
  assert.deepEqual(describeLoadClass(loadClassOf(busy)), others);
});
