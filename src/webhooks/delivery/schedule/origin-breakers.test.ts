import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MIN_FAILURES } from './breaker.ts';
import { createOriginBreakers } from './origin-breakers.ts';

const MOMENT = { nowMs: 1000, random: 0.5 };
const MANY = 10_000;

function failTimes(breakers: ReturnType<typeof createOriginBreakers>, origin: string, times: number): void {
  for (let count = 0; count < times; count += 1) breakers.record(origin, { kind: 'failure' }, MOMENT);
}

test('origins with a single failure, however many, end no pause of another', () => {
  const breakers = createOriginBreakers();
  failTimes(breakers, 'https://down.example', MIN_FAILURES);
  for (let index = 0; index <= MANY; index += 1) failTimes(breakers, `https://${index}.example`, 1);
  assert.equal(breakers.find('https://down.example').state, 'open');
  assert.equal([...breakers.list(MOMENT.nowMs)].length, MANY + 1);
  assert.equal(breakers.find('https://0.example').attempts, 0, 'the oldest is forgotten');
  assert.equal(breakers.find(`https://${MANY}.example`).attempts, 1);
});

test('of more open breakers than are kept the newest stay', () => {
  const breakers = createOriginBreakers();
  for (let index = 0; index <= MANY; index += 1) failTimes(breakers, `https://${index}.example`, MIN_FAILURES);
  assert.equal(breakers.find('https://0.example').state, 'closed');
  assert.equal(breakers.find('https://1.example').state, 'open');
  breakers.record('https://1.example', { kind: 'begin' }, { ...MOMENT, nowMs: 100_000 });
  assert.equal(breakers.find('https://1.example').state, 'probing');
  assert.equal([...breakers.list(MOMENT.nowMs)].length, MANY);
});
