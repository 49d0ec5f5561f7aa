/** How much the connections do in one turn of the event loop, counted in units of work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Share, Turns } from './turns.ts';

/** A call of thousands of inputs. */
const LARGE = 1500;
/** The most work of one turn: what fills it, and the first shares of 64 connections. */
const MAX_FIRST_TURN = 3600;

test('large calls of many connections are done few in a turn, and every connection comes about', async () => {
  const turns = new Turns(() => 0);
  let doneInTurn = 0;
  let isOver = false;
  const done = Array.from({ length: 8 }, () => 0);
  const shares: Share[] = done.map((_, index) => {
    const share = new Share(turns, () => {
      share.spend(LARGE);
      doneInTurn += LARGE;
      done[index]! += 1;
      if (!isOver) share.ask();
    });
    return share;
  });
  for (const share of shares) share.ask();
  for (let turn = 0; turn < 400; turn++) {
    doneInTurn = 0;
    await nextTurn();
    assert.ok(doneInTurn <= 2 * LARGE, `${doneInTurn} units in one turn`);
  }
  isOver = true;
  assert.ok(Math.min(...done) > 0);
  assert.ok(Math.max(...done) - Math.min(...done) <= 1, done.join(' '));
});

/** Three connections after five turns, in which `busy` did much and `quiet` little. `greedy` begins the next turn. */
async function openShares(turns: Turns) {
  const [greedy, busy, quiet] = [0, 1, 2].map(() => new Share(turns, () => {})) as [Share, Share, Share];
  for (let turn = 0; turn < 5; turn++) {
    for (const share of [greedy, busy, quiet]) share.renew();
    busy.spend(300);
    quiet.spend(20);
    await nextTurn();
  }
  greedy.renew();
  return { greedy, busy, quiet };
}

test('in a turn that is full, a connection that does much waits, and one that does little does not', async () => {
  const turns = new Turns(() => 0);
  const { greedy, busy, quiet } = await openShares(turns);
  greedy.spend(LARGE);
  busy.renew();
  quiet.renew();
  assert.equal(busy.isSpent, true);
  assert.equal(quiet.isSpent, false);
  await nextTurn();
  assert.equal(busy.isSpent, false);
});

test('a turn is full too when its work takes longer than it is counted for', async () => {
  let nowMs = 0;
  const turns = new Turns(() => nowMs);
  const { greedy, busy, quiet } = await openShares(turns);
  greedy.spend(100);
  nowMs += 10;
  busy.renew();
  quiet.renew();
  assert.deepEqual([busy.isSpent, quiet.isSpent], [true, false]);
});

test('connections that begin in one turn do not take their first shares together', () => {
  const turns = new Turns(() => 0);
  let done = 0;
  for (let connection = 0; connection < 64; connection++) {
    const share = new Share(turns, () => {});
    share.renew();
    assert.equal(share.isSpent, false, 'the first call of a new client waits for no turn');
    while (!share.isSpent) {
      share.spend(10);
      done += 10;
    }
  }
  assert.ok(done < MAX_FIRST_TURN, `${done} units in one turn`);
});
