/** A call that mostly waits, and may be the largest when its first answer finds no room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { block, DATA, frame, frameMessage, HEADERS, SETTINGS } from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcWatchMethod } from './service.ts';

/** SETTINGS_INITIAL_WINDOW_SIZE of 0: no answer may be sent. */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);

test('a watch whose first answer finds no room ends with its call', async () => {
  let [begun, ended] = [0, 0];
  const watch: GrpcWatchMethod = {
    kind: 'watch',
    name: 'Watch',
    keepsNoBytes: true,
    watch(_message, send) {
      begun += 1;
      send(Buffer.from('x'));
      return () => {
        ended += 1;
      };
    },
  };
  await using running = await startGrpcServer([watch], { maxMessageBytes: 2000, bufferBytes: 8000 });
  const client = await FlowClient.connect(running.server.port);
  using _end = { [Symbol.dispose]: () => client.socket.destroy() };
  const path = block(`/${SERVICE}/Watch`);
  client.send(frame(SETTINGS, 0, 0, NO_WINDOW));
  for (const streamId of [1, 3]) client.send(frame(HEADERS, 4, streamId, path));
  const message = frameMessage(Buffer.alloc(1700));
  client.send(frame(HEADERS, 4, 5, path), frame(DATA, 0, 5, message.subarray(0, 1000)));
  await client.settle();
  client.send(frame(DATA, 1, 5, message.subarray(1000)));
  await client.settle();
  assert.deepEqual([begun, ended], [1, 1]);
});
