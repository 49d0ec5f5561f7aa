/** Streams that wait count for as much memory as they keep, or thousands of them would fill it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { measureHeapOf } from '../../../test/support/basics/memory-growth.ts';
import { FlowClient } from '../../../test/support/grpc/flow-client.ts';
import { startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import { DATA, frame, frameMessage, HEADERS, WINDOW_UPDATE } from '../../../test/support/grpc/http2-frames.ts';
import { WAITING_CALL_BYTES } from '../../grpc/call/base-call.ts';
import { WAITING_STREAM_BYTES } from '../../grpc/call/streaming-call.ts';
import { encodeHeaderBlock } from '../../grpc/hpack/hpack-encoder.ts';
import { createReflection } from '../../grpc/services/reflection.ts';
import { realWorld } from '../../world.ts';
import { createObservationService } from './observation-service.ts';

const STREAMS = 1000;

const sink = { report: () => Promise.resolve({ accepted: 1, refusals: [] }) };
const descriptors = readFileSync(new URL('../../gen/descriptors.binpb', import.meta.url));

for (const { method, message, counted } of [
  {
    method: createObservationService({ sink, world: realWorld }).grpc.methods[0]!,
    message: undefined,
    counted: WAITING_CALL_BYTES,
  },
  {
    method: createReflection(descriptors, [])[0]!.methods[0]!,
    message: frameMessage(Buffer.of(0x3a, 0)),
    counted: WAITING_STREAM_BYTES,
  },
])
  test(`a stream of ${method.name} that waits keeps no more than it counts for`, async () => {
    await using running = await startGrpcServer([method]);
    const head = encodeHeaderBlock([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', `/test.v1.EchoService/${method.name}`],
      ['te', 'trailers'],
      ['content-type', 'application/grpc'],
    ]);
    const open = async (): Promise<FlowClient> => {
      const client = await FlowClient.connect(running.server.port);
      client.send(frame(WINDOW_UPDATE, 0, 0, Buffer.of(0, 16, 0, 0)));
      for (let id = 1; id < 2 * STREAMS; id += 2) {
        client.send(frame(HEADERS, 4, id, head));
        if (message !== undefined) client.send(frame(DATA, 0, id, message));
      }
      await client.settle();
      if (message !== undefined)
        await client.until(() => client.frames.filter(({ type }) => type === DATA).length === STREAMS);
      client.frames.length = 0;
      return client;
    };
    const [kept, ...clients] = await measureHeapOf(open);
    const bytes = kept / STREAMS;
    assert.ok(bytes < counted, `${bytes} bytes a stream, ${counted} counted`);
    assert.ok(bytes > counted / 4, `${bytes} bytes a stream, ${counted} counted`);
    assert.deepEqual(
      clients.map(({ isClosed }) => isClosed),
      [false, false],
    );
    for (const { socket } of clients) socket.destroy();
  });
