import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulatePool } from '../../../test/support/prediction/simulated-pool.ts';
import { fillMetrics } from '../schema/input-fields.ts';
import type { Observation } from '../schema/observation.ts';
import { appendObservation, createObservationTable, type ObservationTable } from '../schema/observation-table.ts';
import { GPUS } from '../simulator/step-time.ts';
import { findTimeMistakes } from './time-mistake.ts';

const medium = GPUS.find(({ name }) => name === 'medium')!;

interface Recording {
  readonly requestsPerSecondEach: number;
  readonly startMs?: number;
  /** By how much its times of day are stretched. */
  readonly stretch?: number;
}

function record({ requestsPerSecondEach, startMs = 1.7e12, stretch = 1 }: Recording): Observation[] {
  const options = { gpus: [medium, medium], seed: requestsPerSecondEach, durationMs: 40_000, requestsPerSecondEach };
  return simulatePool(options).map(({ candidate, outcome, ttftMs, tpotMs }) => {
    const { server, underWay: _, sentSinceScrape: __, ...metrics } = candidate;
    const input = { ...fillMetrics(() => 0), ...metrics, podType: '', serverIp: server };
    return { targetModel: 'm', input, atMs: startMs + stretch * outcome.dispatchedMs, ttftMs, tpotMs };
  });
}

function tabulate(recordings: readonly Recording[]): ObservationTable {
  const table = createObservationTable();
  for (const observation of recordings.flatMap(record)) appendObservation(table, observation);
  return table;
}

const HOUR_MS = 3_600_000;
const OVERLAP = /^Do the times of recordings overlap\? Requests that reached the server "server-\d" at the same time/;
const UNIT = /^Are the times of day milliseconds since the epoch\? On the server "server-0"/;

const cases: [title: string, recordings: readonly Recording[], expected: readonly RegExp[]][] = [
  ['no row', [], []],
  ...[1, 4, 8, 12, 16].map((rate): [string, readonly Recording[], readonly RegExp[]] => [
    `one recording at ${rate} requests a second each`,
    [{ requestsPerSecondEach: rate }],
    [],
  ]),
  [
    'recordings one after the other',
    [4, 8, 12, 16].map((rate) => ({ requestsPerSecondEach: rate, startMs: 1.7e12 + rate * HOUR_MS })),
    [],
  ],
  ['recordings that begin together', [4, 8, 12, 16].map((rate) => ({ requestsPerSecondEach: rate })), [OVERLAP]],
  ['two recordings that begin together', [6, 14].map((rate) => ({ requestsPerSecondEach: rate })), [OVERLAP]],
  ['milliseconds that were read as seconds', [{ requestsPerSecondEach: 12, stretch: 1000 }], [UNIT]],
];
for (const [title, recordings, expected] of cases)
  test(`findTimeMistakes() of ${title} finds ${expected.length === 0 ? 'none' : 'it'}`, () => {
    const mistakes = findTimeMistakes(tabulate(recordings));
    assert.equal(mistakes.length, expected.length, mistakes.join('\n'));
    for (const [i, pattern] of expected.entries()) assert.match(mistakes[i]!, pattern);
  });

test('findTimeMistakes() takes the length of answers from rows that have it', () => {
  const table = tabulate([{ requestsPerSecondEach: 4 }]);
  for (let row = 0; row < table.count; row++) {
    // Answers take 100 s; those of 200 tokens would take 1 s, and 110 requests would not be under way.
    table.atMs[row] = 1.7e12 + 1000 * row;
    table.ttftMs[row] = Number.NaN;
    table.tpotMs[row] = 5;
    table.outputTokens[row] = 20_000;
    table.numRequestRunning[row] = 110;
    table.numRequestWaiting[row] = 0;
  }
  assert.deepEqual(findTimeMistakes(table), []);
});

test('rows without times of day are no mistake', () => {
  const table = tabulate([{ requestsPerSecondEach: 4 }]);
  table.atMs.fill(Number.NaN);
  assert.deepEqual(findTimeMistakes(table), []);
});
