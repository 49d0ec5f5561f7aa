/** However many streams report, few events wait for their commit, and each report gets its share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOW_MS } from '../../../test/support/observation-events.ts';
import type { ObservationSink } from '../schema/observation-event.ts';
import { createDraft } from './event-draft.ts';
import { EventIntake } from './event-intake.ts';
import { EventQueueShare } from './event-queue-share.ts';

test('take() waits when the events of all reports take the room, and goes on after a commit', async () => {
  const commits: (() => void)[] = [];
  const sink: ObservationSink = {
    report: async (events) => {
      await new Promise<void>((resolve) => commits.push(resolve));
      return { accepted: events.length, refusals: [] };
    },
  };
  const queueShare = new EventQueueShare();
  const intakes = Array.from({ length: 64 }, () => new EventIntake({ sink, queueShare, nowMs: () => NOW_MS }));
  let taken = 0;
  const read = () => ({ ...createDraft('finished'), requestId: `r${taken}` });
  const sent = intakes.map(async (intake) => {
    for (let event = 0; event < 100; event++) {
      await intake.take(read);
      taken += 1;
    }
    return intake.finish();
  });
  let isDone = false;
  const finished = Promise.all(sent).finally(() => {
    isDone = true;
  });
  let before = 0;
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(taken - before <= 2 * 512 + 2 * intakes.length, `${taken - before} events between two commits`);
    before = taken;
    for (const commit of commits.splice(0)) commit();
  }
  const summaries = await finished;
  assert.deepEqual(
    summaries.map(({ accepted }) => accepted),
    intakes.map(() => 100),
  );
});

test('share is all of the room for one report, and a part of it for each of many', () => {
  const queueShare = new EventQueueShare();
  queueShare.enter();
  assert.equal(queueShare.share, 512);
  for (let report = 1; report < 128; report++) queueShare.enter();
  assert.equal(queueShare.share, 4);
  for (let report = 0; report < 127; report++) queueShare.leave();
  assert.equal(queueShare.share, 512);
});
