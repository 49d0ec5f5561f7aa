import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createLiveStreams } from './live-streams.ts';

test('a stream whose reader leaves too much unread closes without the event that tells the browser not to ask again', async () => {
  let count = 0;
  const streams = createLiveStreams({ world: { sleep: async () => {}, monotonicMs: () => 0 } });
  const response = streams.open('ada', async () => {
    count += 1;
    return `content ${count}`;
  });
  // All that the stream does without a reader ends in this turn of the event loop.
  await setImmediate();
  const text = await response.text();
  assert.match(text, /content 1\n/);
  assert.doesNotMatch(text, /event: end/);
});
