/** What a process wrote while its clock was wrong holds up nothing once a process with a right clock works on it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { numberedPush, startAnnouncingPrograms } from '../support/announcing-programs.ts';
import { createStorePlace, engines, findReasonToSkip } from '../support/engines.ts';
import { startReceiver } from '../support/receiver.ts';
import { startProgram } from '../support/start-program.ts';

const DAY_MS = 86_400_000;
const SHIFT = new URL('../support/shifted-clock.ts', import.meta.url).href;

for (const engine of engines)
  test(`a retry that was planned by a clock a day ahead follows soon after the clock is right (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 120_000,
  }, async () => {
    await using receiver = await startReceiver((_, response, index) => {
      response.statusCode = index === 0 ? 500 : 200;
      response.end();
    });
    await using ahead = await startAnnouncingPrograms({
      place: await createStorePlace(engine),
      processes: 1,
      urls: [receiver.url],
      environment: { NODE_OPTIONS: `--import ${SHIFT}`, TEST_CLOCK_AHEAD_MS: String(DAY_MS) },
    });
    const announced = await ahead.call('POST', new URL(ahead.eventsUrl(0)).pathname, numberedPush(1));
    assert.equal(announced.status, 202);
    await receiver.waitFor(1);
    // A stop stores the result of the attempt, and with it the time of the retry.
    await ahead.programs[0]?.stop();
    const { NODE_OPTIONS: _, ...environment } = ahead.environment;
    await using right = await startProgram(environment, environment.TRIVET_DATA_DIR);
    await receiver.waitFor(2);
    assert.equal(
      receiver.received[1]?.headers['x-gitcode-delivery'],
      receiver.received[0]?.headers['x-gitcode-delivery'],
    );
    await right.stop();
  });

test('two processes a day apart on one PostgreSQL send each delivery once and wait between retries', {
  skip: findReasonToSkip('postgres'),
  timeout: 240_000,
}, async () => {
  const count = 20;
  await using receiver = await startReceiver();
  await using broken = await startReceiver((_, response) => {
    response.statusCode = 500;
    response.end();
  });
  await using right = await startAnnouncingPrograms({
    place: await createStorePlace('postgres'),
    processes: 1,
    urls: [receiver.url, broken.url],
  });
  await using _ahead = await startProgram({
    ...right.environment,
    NODE_OPTIONS: `--import ${SHIFT}`,
    TEST_CLOCK_AHEAD_MS: String(DAY_MS),
  });
  for (let at = 0; at < count; at += 1) {
    const announced = await right.call('POST', new URL(right.eventsUrl(0)).pathname, numberedPush(at));
    assert.equal(announced.status, 202);
  }
  await receiver.waitFor(count);
  // Five failures pause the hook; the sixth attempt is the probe after five seconds.
  await broken.waitFor(6);
  const attempts = Map.groupBy(broken.received, ({ headers }) => headers['x-gitcode-delivery']);
  assert.ok(Math.max(...[...attempts.values()].map((some) => some.length)) <= 2);
  assert.equal(receiver.received.length, count);
});
