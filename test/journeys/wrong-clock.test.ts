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
