import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRequest, HOLD_MS, openQueue, spanOf } from '../../../test/support/prediction/span-queue.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import type { Span } from '../formats/spans/span.ts';
import { selectLearnableSpans } from './learnable-spans.ts';
import { countWaitingSpans } from './span-store.ts';

/** A request of `createRequest()` has just ended. */
const RULES = { nowMs: 1600, maxLateMs: HOLD_MS, maxOfServer: 9, countWaiting: () => 0 };

test('a span takes its model from itself, then from its resource, then from the setting', () => {
  const plain = spanOf({ ...createRequest(), more: [['gen_ai.response.model', '']] });
  const ofResource = { ...plain, resource: new Map([...plain.resource, ['gen_ai.request.model', 'resource']]) };
  const ofRequest = { ...ofResource, attributes: new Map([...plain.attributes, ['gen_ai.request.model', 'request']]) };
  const ofResponse = { ...ofRequest, attributes: new Map([...ofRequest.attributes, ['gen_ai.response.model', 'm']]) };
  const { spans, rejected: count } = selectLearnableSpans([plain, ofResource, ofRequest, ofResponse], {
    ...RULES,
    model: 'setting',
  });
  assert.deepEqual([spans.map(({ targetModel }) => targetModel), count], [['setting', 'resource', 'request', 'm'], 0]);
});

const rejected: [title: string, span: Span, reason: RegExp][] = [
  [
    'a missing model',
    spanOf({ ...createRequest(), more: [['gen_ai.response.model', '']] }),
    /the span or its resource must name the model, with one of gen_ai\.response\.model, .*; or PREDICTION_TRACES_MODEL must/,
  ],
  [
    'no server',
    { ...spanOf(createRequest()), resource: new Map() },
    /the resource must name the server, with one of .*service\.instance\.id/,
  ],
  ['no id', { ...spanOf(createRequest()), spanId: '' }, /spanId must be present/],
  ['a TTFT of 0', spanOf({ ...createRequest(), ttftMs: 0 }), /time_to_first_token must be more than 0/],
  ['an end before the first token', spanOf({ ...createRequest(), latencyMs: 50 }), /end_ms must not be before/],
  [
    'a NUL',
    spanOf({ ...createRequest(), more: [['gen_ai.response.model', 'a\0']] }),
    /must not contain the character NUL/,
  ],
  ['a time that is not a number', spanOf({ ...createRequest(), ttftMs: Number.NaN }), /must be a finite number/],
  ['a start in another year', spanOf({ ...createRequest(), startMs: 9e15 }), /must be at most/],
  ['a long name', spanOf({ ...createRequest(), server: 'x'.repeat(300) }), /must have at most 256 bytes/],
  [
    'a clock that is ahead',
    spanOf({ ...createRequest(), startMs: 61_001 }),
    /must not end more than 60 s ahead: check the clock/,
  ],
  [
    'a clock that is behind, or a long delay',
    spanOf({ ...createRequest(), startMs: -9001 }),
    /must have ended at most 10 s ago, .* check the clock of the server and how long the collector waits/,
  ],
];

for (const [title, span, reason] of rejected)
  forEachEngine(`a span with ${title} is rejected, the others are taken`, async (store) => {
    const { queue } = openQueue(store);
    const accepted = selectLearnableSpans([span, spanOf({ ...createRequest(), id: 'good' })], RULES);
    assert.match(accepted.reason, reason);
    assert.equal(accepted.rejected, 1);
    await queue.add(accepted.spans);
    assert.deepEqual(await countWaitingSpans(store), new Map([['s1', 1]]));
  });
