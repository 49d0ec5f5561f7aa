import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { trainModel } from '../training/train-model.ts';
import { challengeChampion } from './challenge.ts';

test('a champion is not tested on rows that it was trained on, and is replaced after a new kind of server came', () => {
  const known = observePool({ rows: 800 });
  const news = observePool({ rows: 200, servers: [1, 4], seed: 2 }).filter(
    ({ input }) => input.serverIp === '10.0.0.1',
  );
  const champion = trainModel('m@1', tabulate(known));
  const table = tabulate([...known, ...news]);
  const { judgedRows, winner, championError, challengerError } = challengeChampion(
    table,
    champion,
    (row) => row >= known.length,
  );
  assert.equal(judgedRows, Math.ceil(news.length / 2), 'the challenger has learned from the other half');
  assert.ok(challengerError < 0.6 * championError, `${challengerError} beside ${championError}`);
  assert.ok(winner !== undefined);
});

test('rows of a log that is older than the training rows of the champion are no test rows, however many they are', () => {
  const known = observePool({ rows: 300 });
  const champion = trainModel('m@1', tabulate(known));
  const log = observePool({ rows: 3000, seed: 2 });
  const { judgedRows } = challengeChampion(tabulate([...log, ...known]), champion, (row) => row < log.length);
  assert.equal(judgedRows, 0);
});
