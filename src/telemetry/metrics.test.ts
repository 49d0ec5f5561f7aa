/** One metric that cannot be read must not make the others of a scrape fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Counter, Gauge } from 'prom-client';
import { createLog } from './log.ts';
import { createMetrics } from './metrics.ts';

function openMetrics(readPending: () => Promise<number>, lines: string[] = []) {
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const metrics = createMetrics({ world: { sleep: () => Promise.resolve() }, log });
  const registers = [metrics];
  new Counter({ name: 'calls_total', help: 'Calls.', registers }).inc();
  new Gauge({
    name: 'pending',
    help: 'Waits.',
    registers,
    async collect() {
      this.set(await readPending());
    },
  });
  return metrics;
}

test('a metric keeps its last value while it cannot be read, beside all others', async () => {
  let answer: () => Promise<number> = async () => 7;
  const metrics = openMetrics(() => answer());
  await metrics.metrics();
  answer = () => Promise.reject(new Error('the database is away'));
  const text = await metrics.metrics();
  assert.match(text, /^pending 7$/m);
  assert.match(text, /^calls_total 1$/m);
  answer = async () => 8;
  assert.match(await metrics.metrics(), /^pending 8$/m);
});

test('a metric that cannot be read is logged once, and once more when it can be read again', async () => {
  let isBroken = false;
  const lines: string[] = [];
  const metrics = openMetrics(async () => {
    if (isBroken) throw new Error('no such column');
    return 1;
  }, lines);
  for (const broken of [false, true, true, false, false, true]) {
    isBroken = broken;
    await metrics.metrics();
  }
  const logged = lines.map((line) => JSON.parse(line) as { level: string; metric: string; err?: { message: string } });
  assert.deepEqual(
    logged.map(({ level, metric, err }) => [level, metric, err?.message]),
    [
      ['warn', 'pending', 'no such column'],
      ['info', 'pending', undefined],
      ['warn', 'pending', 'no such column'],
    ],
  );
});

test('a read that throws at once is tried again by the next scrape', async () => {
  let isAway = true;
  const metrics = openMetrics(() => {
    if (isAway) throw new Error('the database is away');
    return Promise.resolve(3);
  });
  assert.match(await metrics.metrics(), /^calls_total 1$/m);
  isAway = false;
  assert.match(await metrics.metrics(), /^pending 3$/m);
});

test('scrapes do not wait for a read without an answer, and share it', async () => {
  const answer = Promise.withResolvers<number>();
  let reads = 0;
  const metrics = openMetrics(() => {
    reads += 1;
    return answer.promise;
  });
  for (const text of [await metrics.metrics(), await metrics.metrics()]) assert.match(text, /^calls_total 1$/m);
  assert.equal(reads, 1);
  answer.resolve(9);
  await answer.promise;
  assert.match(await metrics.metrics(), /^pending 9$/m);
});
