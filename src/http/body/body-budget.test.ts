/** When bodies fill their shared budget, some of them are dropped. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBodyBudget } from './body-budget.ts';

/** A body of this length fills its pages, which are counted. */
const BLOCK = 65_536;

function openBodies(maxBlocks: number) {
  const budget = createBodyBudget({ maxBytes: maxBlocks * BLOCK });
  const gone: string[] = [];
  const open = (name: string, network = 'one') => {
    const body = budget.open(network, ({ code }) => gone.push(`${name} ${code}`));
    return { ...body, add: (bytes: number) => body.add(Buffer.alloc(bytes)) };
  };
  return { gone, open };
}

test('the oldest body that still arrives gives way, once', () => {
  const { gone, open } = openBodies(2);
  const [first, second, third] = [open('first'), open('second'), open('third')];
  first.add(BLOCK);
  second.add(BLOCK);
  assert.deepEqual(gone, []);
  third.add(1);
  assert.deepEqual(gone, ['first unavailable']);
  first.add(100 * BLOCK);
  first.close();
  third.add(BLOCK - 1);
  assert.deepEqual(gone, ['first unavailable']);
});

test('a body whose sender is not known yet gives way before older ones', () => {
  const { gone, open } = openBodies(2);
  const [known, stranger, late] = [open('known'), open('stranger'), open('late')];
  known.add(BLOCK);
  stranger.giveWayFirst();
  stranger.add(BLOCK);
  late.add(1);
  assert.deepEqual(gone, ['stranger unavailable']);
  late.add(2 * BLOCK);
  assert.deepEqual(gone, ['stranger unavailable', 'known unavailable']);
});

test('a network with more than half of the room gives way to others, its strangers before its callers', () => {
  const { gone, open } = openBodies(4);
  const other = open('old body of another', 'other');
  other.add(BLOCK);
  const greedy = ['first', 'second', 'third'].map((name) => open(name));
  greedy[1]!.giveWayFirst();
  for (const body of greedy) body.add(BLOCK);
  assert.deepEqual(gone, []);
  const late = open('late stranger of another', 'other');
  late.giveWayFirst();
  late.add(BLOCK);
  assert.deepEqual(gone, ['second unavailable']);
});

test('of networks with less than half of the room, strangers give way first, then the network with most', () => {
  const { gone, open } = openBodies(4);
  const [small, large, larger, stranger] = [
    open('small', 'a'),
    open('large', 'b'),
    open('second of b', 'b'),
    open('stranger', 'c'),
  ];
  stranger.giveWayFirst();
  for (const body of [small, large, larger, stranger]) body.add(BLOCK);
  open('late', 'd').add(1);
  assert.deepEqual(gone, ['stranger unavailable']);
  open('later', 'd').add(BLOCK);
  assert.deepEqual(gone, ['stranger unavailable', 'large unavailable']);
});

test('eight bodies of 8 MiB arrive at once', () => {
  const gone: string[] = [];
  const budget = createBodyBudget();
  for (let index = 0; index < 8; index++) {
    const body = budget.open('one', () => gone.push(`body ${index}`));
    for (let part = 0; part < 128; part++) body.add(Buffer.alloc(65_536));
  }
  assert.deepEqual(gone, []);
  budget.open('one', () => {}).add(Buffer.alloc(1));
  assert.deepEqual(gone, ['body 0']);
});

test('a body that has arrived whole keeps its room until it is closed', () => {
  const { gone, open } = openBodies(1);
  const [whole, late] = [open('whole'), open('late')];
  whole.add(BLOCK);
  assert.equal(whole.complete().length, BLOCK);
  late.add(1);
  assert.deepEqual(gone, ['late unavailable']);
  whole.close();
  open('next').add(BLOCK);
  assert.equal(gone.length, 1);
});

test('a body that was only announced does not give way, since that makes no room', () => {
  const { gone, open } = openBodies(1.5);
  const announced = open('announced');
  open('first').add(BLOCK);
  open('second').add(BLOCK);
  assert.deepEqual(gone, ['first unavailable']);
  announced.add(1);
  assert.deepEqual(gone, ['first unavailable']);
});

test('a body larger than all the room arrives while it is alone', () => {
  const { gone, open } = openBodies(1);
  const large = open('large');
  large.add(5 * BLOCK);
  assert.deepEqual(gone, []);
  open('other').add(1);
  assert.deepEqual(gone, ['large unavailable']);
});

test('the memory of a body that gave way is used again, and that of a body that arrived is not', () => {
  const counted: number[] = [];
  const budget = createBodyBudget({ maxBytes: 1, countGarbage: (bytes) => counted.push(bytes) });
  const whole = budget.open('one', () => {});
  whole.add(Buffer.alloc(BLOCK, 1));
  const bytes = whole.complete();
  whole.close();
  const dropped = budget.open('one', () => {});
  dropped.add(Buffer.alloc(BLOCK, 2));
  dropped.close();
  dropped.add(Buffer.alloc(BLOCK, 3));
  const next = budget.open('one', () => {});
  next.add(Buffer.alloc(BLOCK, 4));
  assert.ok(bytes.every((byte) => byte === 1));
  assert.ok(next.complete().every((byte) => byte === 4));
  assert.deepEqual(counted, []);
});

test('what arrived is freed once it was copied, and counted as garbage where it is a part of other memory', () => {
  const counted: number[] = [];
  const budget = createBodyBudget({ countGarbage: (bytes) => counted.push(bytes) });
  const body = budget.open('one', () => {});
  const [own, shared] = [Buffer.alloc(100, 1), Buffer.alloc(200, 2)];
  body.add(own);
  body.add(shared.subarray(100));
  assert.deepEqual([own.length, shared.length, counted], [0, 200, [100]]);
  assert.equal(body.complete().length, 200);
});

test('10,000 slow bodies of one byte leave most of the room', () => {
  const gone: string[] = [];
  const budget = createBodyBudget();
  for (let index = 0; index < 10_000; index++)
    budget.open('one', () => gone.push(`body ${index}`)).add(Buffer.alloc(1));
  const large = budget.open('two', () => gone.push('large'));
  for (let part = 0; part < 128; part++) large.add(Buffer.alloc(65_536));
  assert.deepEqual(gone, []);
});
