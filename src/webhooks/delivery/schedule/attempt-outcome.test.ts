import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from './attempt-outcome.ts';
import { toBreakerEvents } from './attempt-outcome.ts';

const silent = (stage: 'before-connect' | 'connect' | 'response'): Outcome => ({
  kind: 'unreachable',
  reason: 'x',
  stage,
});
const refused = (status: number, retryAfterMs?: number): Outcome => ({ kind: 'refused', status, retryAfterMs });

const cases: [title: string, outcome: Outcome, ofHook: string | undefined, ofOrigin: string | undefined][] = [
  ['accepted', { kind: 'accepted', status: 200 }, 'success', 'success'],
  ['redirected', refused(302), 'failure', 'success'],
  ['unauthorized', refused(401), 'failure', 'success'],
  ['429 without a wait', refused(429), 'failure', 'success'],
  ['429 with a wait', refused(429, 1000), 'rate_limited', 'success'],
  ['500', refused(500), 'failure', 'success'],
  ['503 with a wait', refused(503, 1000), 'failure', 'success'],
  ['gone', { kind: 'gone', status: 410 }, 'failure', 'success'],
  ['no connection', silent('connect'), undefined, 'failure'],
  ['a connection, but no response', silent('response'), 'failure', 'success'],
  ['nothing to send', silent('before-connect'), 'failure', undefined],
  ['a forbidden address', { kind: 'blocked' }, 'failure', undefined],
];
for (const [title, outcome, ofHook, ofOrigin] of cases)
  test(`${title}: ${ofHook ?? 'nothing'} of the hook, ${ofOrigin ?? 'nothing'} of the origin`, () => {
    const events = toBreakerEvents(outcome);
    assert.deepEqual([events.ofHook?.kind, events.ofOrigin?.kind], [ofHook, ofOrigin]);
  });
