import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { createRandom } from '../simulator/random-draws.ts';
import { createRecentRows, NEWEST_ROWS } from './recent-rows.ts';

const MOST_ROWS = 8192 + NEWEST_ROWS;

function openRows(servers: number) {
  const addresses = Array.from({ length: servers }, (_, i) => Uint8Array.of(i >> 8, i & 255));
  const rows = createRecentRows({ capacity: servers, addressOf: (server) => addresses[server] });
  const add = (server: number, target: PredictionTarget, observedMs = 1) =>
    rows.add({ key: { server, address: addresses[server], podType: 0 }, podType: '', metrics: [], target, observedMs });
  const countOf = (server: number) => rows.list().filter(({ key }) => key.server === server).length;
  return { rows, add, countOf };
}

test('rows are bounded, and each server has one of each target before another has two', () => {
  const { rows, add } = openRows(4000);
  const random = createRandom(5);
  for (let i = 0; i < 100_000; i++) add(Math.floor(4000 * random()), PREDICTION_TARGETS[i % 2]!);
  const list = rows.list();
  assert.equal(list.length, MOST_ROWS);
  assert.equal(new Set(list.map(({ key, target }) => `${key.server} ${target}`)).size, 8000);
});

test('four rows of a target stay of a quiet server, fewer if others observed it since', () => {
  const { rows, add, countOf } = openRows(4);
  const observeBusy = () => {
    for (let i = 0; i < 2 * NEWEST_ROWS; i++) add(3, 'ttft');
  };
  for (const server of [0, 1, 2]) for (let i = 0; i < 10; i++) add(server, 'ttft');
  rows.countOthers({ server: 1, target: 'ttft' }, { events: 3, later: 0 });
  rows.countOthers({ server: 2, target: 'ttft' }, { events: 9, later: 2 });
  observeBusy();
  assert.deepEqual([0, 1, 2].map(countOf), [4, 1, 2]);
  rows.replace(rows.list());
  for (let i = 0; i < 9; i++) rows.countOthers({ server: 0, target: 'ttft' }, { events: 1, later: 0 });
  observeBusy();
  assert.deepEqual([0, 1, 2].map(countOf), [0, 1, 2]);
});
