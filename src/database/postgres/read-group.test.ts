import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BoundStatement, Row } from '../store.ts';
import { createReadGroup } from './read-group.ts';

const find = { name: 'find', text: 'SELECT $1' };
const textOf = ({ parameters }: BoundStatement) => String(parameters[0]);
const answerTo = (bound: BoundStatement): Row[] => [{ text: textOf(bound) }];

test('createReadGroup() sends the reads of one turn of the event loop in one message, and equal reads once', async () => {
  const trips: string[][] = [];
  const group = createReadGroup(async (statements) => {
    trips.push(statements.map(textOf));
    return statements.map(answerTo);
  });
  const answers = await Promise.all(['a', 'b', 'a'].map((text) => group.read(find, [text])));
  assert.deepEqual(answers, [[{ text: 'a' }], [{ text: 'b' }], [{ text: 'a' }]]);
  assert.deepEqual(trips, [['a', 'b']]);
});

test('createReadGroup() answers a read that comes after the sending with a later one', async () => {
  let version = 0;
  const sent: PromiseWithResolvers<void>[] = [];
  const group = createReadGroup(async (statements) => {
    const seen = version;
    const end = Promise.withResolvers<void>();
    sent.push(end);
    await end.promise;
    return statements.map(() => [{ version: seen }]);
  });
  const before = group.read(find, ['a']);
  await new Promise(setImmediate);
  version = 1;
  const after = group.read(find, ['a']);
  await new Promise(setImmediate);
  for (const end of sent) end.resolve();
  assert.deepEqual(await Promise.all([before, after]), [[{ version: 0 }], [{ version: 1 }]]);
});

test('createReadGroup() fails only the read that cannot be answered', async () => {
  const group = createReadGroup(async (statements) => {
    if (statements.some((bound) => textOf(bound) === 'bad')) throw new Error('bad value');
    return statements.map(answerTo);
  });
  const outcomes = await Promise.allSettled(['good', 'bad'].map((text) => group.read(find, [text])));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  );
});

test('createReadGroup() distinguishes parameters that look alike', async () => {
  const group = createReadGroup(async (statements) =>
    statements.map(({ parameters }) => [{ parameters: parameters.length }]),
  );
  const answers = await Promise.all([group.read(find, ['a b']), group.read(find, ['a', 'b']), group.read(find, [1])]);
  assert.deepEqual(
    answers.map(([row]) => row?.parameters),
    [1, 2, 1],
  );
});
