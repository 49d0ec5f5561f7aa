import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANSWERED_ROW } from '../../../test/support/answered-row.ts';
import { type AnsweredRow, createLiveAccuracy } from './live-accuracy.ts';

const HOUR_MS = 3_600_000;
const NOW = Date.UTC(2026, 5, 1, 12, 30);
const ROW: AnsweredRow = { ...ANSWERED_ROW, nowMs: NOW };

test('scores are those of the evaluation, for each pod type and target, over the last 24 hours', () => {
  const accuracy = createLiveAccuracy();
  accuracy.observe({ ...ROW, nowMs: NOW - 24 * HOUR_MS, observedMs: 1 });
  accuracy.observe({ ...ROW, nowMs: NOW - HOUR_MS });
  accuracy.observe({ ...ROW, podType: 'aggregate', observedMs: 200 });
  accuracy.observe({ ...ROW, podType: 'prefill', target: 'tpot' });
  const [whole, prefill, ...rest] = accuracy.listSlots('m', NOW);
  assert.deepEqual(rest, []);
  assert.deepEqual([prefill?.podType, prefill?.target, prefill?.scores.rows], ['prefill', 'tpot', 1]);
  assert.equal(whole?.scores.rows, 2);
  const rounded = Object.values(whole!.scores).map((value) => Math.round(value * 100) / 100);
  // Errors of +10 % and −45 %, 100 of 300 ms; the first time was below its p90, the second above.
  assert.deepEqual(rounded, [2, 27.5, 33.33, -17.5, 50]);
  assert.deepEqual(whole?.hours.map((hour) => hour?.rows ?? 0).slice(-3), [0, 1, 1]);
});

test('a server is judged by about its last hundred times', () => {
  const accuracy = createLiveAccuracy();
  for (let row = 0; row < 50; row += 1) accuracy.observe({ ...ROW, observedMs: 200 });
  for (let row = 0; row < 1000; row += 1) accuracy.observe(ROW);
  const [server] = accuracy.listServers('m');
  assert.deepEqual([server?.server, server?.targets.ttft?.rows, server?.targets.tpot], ['10.0.0.1', 1050, undefined]);
  assert.ok(Math.abs(server!.targets.ttft!.bias - 10) < 0.1);
  assert.ok(Math.abs(server!.targets.ttft!.mdape - 10) < 0.001);
});

test('the names that were reported longest ago are forgotten when there are too many', () => {
  const accuracy = createLiveAccuracy();
  for (let name = 0; name < 1030; name += 1) accuracy.observe({ ...ROW, server: `s${name}`, podType: `p${name}` });
  for (let name = 0; name < 300; name += 1) accuracy.observe({ ...ROW, targetModel: `m${name}` });
  accuracy.observe({ ...ROW, targetModel: 'm100' });
  assert.equal(accuracy.listModels().length, 256);
  assert.equal(accuracy.listModels().at(-1), 'm100');
  assert.deepEqual(accuracy.listServers('m'), []);
  for (let name = 0; name < 1030; name += 1) accuracy.observe({ ...ROW, server: `s${name}`, podType: `p${name}` });
  const servers = accuracy.listServers('m').map(({ server }) => server);
  assert.deepEqual([servers.length, servers[0], accuracy.listSlots('m', NOW).length], [1024, 's6', 32]);
});
