/** Calls leave nothing in the old generation: objects there bring on collections of the whole heap, which pause the process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { measureOldBytes } from '../../../test/support/basics/old-memory.ts';
import {
  clientStream,
  ECHO_PATH,
  echoMethods,
  HELLO,
  SERVICE,
  startGrpcServer,
} from '../../../test/support/grpc/grpc-server.ts';
import type { GrpcMethod } from './service.ts';

const CALLS = 10_000;
const MAX_BYTES_PER_CALL = 40;

const methods: readonly GrpcMethod[] = [
  ...echoMethods,
  { kind: 'unary', name: 'Checked', handle: (request) => request, check: () => Promise.resolve() },
  clientStream('Collect', () => ({ finish: async () => Buffer.alloc(1) })),
];
const running = await startGrpcServer(methods);
after(() => running[Symbol.asyncDispose]());

const cases: [what: string, path: string, inFlight: number][] = [
  ['calls that are answered at once', ECHO_PATH, 8],
  ['calls whose caller is checked', `/${SERVICE}/Checked`, 8],
  ['calls that stream', `/${SERVICE}/Collect`, 8],
];
for (const [what, path, inFlight] of cases)
  test(`${what} leave nothing in old memory`, async () => {
    const target = { host: '127.0.0.1', port: running.server.port, path, message: HELLO };
    const caller = new Worker(new URL('../../../test/support/load/repeat-call.ts', import.meta.url), {
      workerData: { target, inFlight },
    });
    const bytes = await measureOldBytes(async () => {
      caller.postMessage(CALLS);
      const [failed] = await once(caller, 'message');
      assert.equal(failed, 0);
    });
    await caller.terminate();
    assert.ok(bytes < MAX_BYTES_PER_CALL * CALLS, `${bytes / CALLS} bytes a call`);
  });
