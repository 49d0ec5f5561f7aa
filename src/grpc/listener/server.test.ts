import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { serialize } from '../../../test/support/grpc/grpc-client.ts';
import {
  clientStream,
  ECHO_PATH,
  echo,
  HELLO,
  SERVICE,
  startGrpcServer,
  unary,
} from '../../../test/support/grpc/grpc-server.ts';
import { Failure, type FailureCode } from '../../errors.ts';

test('a unary method gets the bytes and its bytes are the answer', async () => {
  await using running = await startGrpcServer([echo]);
  assert.equal((await running.client.unary(ECHO_PATH, HELLO)).toString(), 'hello');
});

test('synchronous answers out of one buffer do not mix', async () => {
  const shared = new Uint8Array(4);
  const method = unary((request) => {
    shared.set(request);
    return shared;
  });
  await using running = await startGrpcServer([method]);
  const requests = Array.from({ length: 200 }, (_, index) => Buffer.from(String(index).padStart(4)));
  const answers = await Promise.all(requests.map((request) => running.client.unary(ECHO_PATH, request)));
  assert.deepEqual(answers.map(String), requests.map(String));
});

const statusOf: Record<FailureCode, number> = {
  invalid: status.INVALID_ARGUMENT,
  unauthenticated: status.UNAUTHENTICATED,
  forbidden: status.PERMISSION_DENIED,
  not_found: status.NOT_FOUND,
  conflict: status.ABORTED,
  too_large: status.RESOURCE_EXHAUSTED,
  too_many: status.RESOURCE_EXHAUSTED,
  unavailable: status.UNAVAILABLE,
  deadline: status.DEADLINE_EXCEEDED,
  internal: status.INTERNAL,
};

test('a failure of each code becomes its status, refusals with their text', async () => {
  const method = unary((request) => {
    throw new Failure(request.toString() as FailureCode, `Cannot: ${request.toString()} größer`);
  });
  await using running = await startGrpcServer([method]);
  for (const [code, expected] of Object.entries(statusOf)) {
    const error = await running.client.unary(ECHO_PATH, Buffer.from(code)).catch((thrown) => thrown);
    assert.equal(error.code, expected, code);
    if (code !== 'internal') assert.equal(error.details, `Cannot: ${code} größer`);
  }
  assert.equal(running.logged.length, 1);
});

test('a refusal that may be retried says when', async () => {
  const method = unary(() => Promise.reject(new Failure('too_many', 'Slow down', { retryAfterSeconds: 1.5 })));
  await using running = await startGrpcServer([method]);
  const error = await running.client.unary(ECHO_PATH, HELLO).catch((thrown) => thrown);
  assert.equal(error.metadata.get('grpc-retry-pushback-ms')[0], '1500');
});

for (const [how, method] of [
  ['thrown', unary(() => fail('secret'))],
  ['rejected', unary(() => Promise.reject(new Error('secret')))],
] as const)
  test(`an unexpected error that is ${how} is INTERNAL without its text, and logged with the trace id`, async () => {
    await using running = await startGrpcServer([method]);
    const traceId = 'ab'.repeat(16);
    const metadata = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const error = await running.client.unary(ECHO_PATH, HELLO, { metadata }).catch((thrown) => thrown);
    assert.equal(error.code, status.INTERNAL);
    assert.equal(error.details, `Internal error, trace id ${traceId}`);
    assert.equal(running.logged[0]?.traceId, traceId);
    assert.match(JSON.stringify(running.logged[0]), /secret/);
  });

function fail(message: string): never {
  throw new Error(message);
}

test('an unknown method is UNIMPLEMENTED', async () => {
  await using running = await startGrpcServer([echo]);
  await assert.rejects(running.client.unary(`/${SERVICE}/None`, HELLO), { code: status.UNIMPLEMENTED });
});

test('a message above the limit is RESOURCE_EXHAUSTED', async () => {
  await using running = await startGrpcServer([echo]);
  await assert.rejects(running.client.unary(ECHO_PATH, Buffer.alloc(100_001)), { code: status.RESOURCE_EXHAUSTED });
  assert.equal((await running.client.unary(ECHO_PATH, Buffer.alloc(100_000))).length, 100_000);
});

test('a deadline that passes aborts the signal and ends the call', async () => {
  const aborted = Promise.withResolvers<void>();
  let begun = 0;
  const method = unary((_request, call) => {
    begun += 1;
    call.signal.addEventListener('abort', () => aborted.resolve());
    return aborted.promise.then(() => HELLO);
  });
  await using running = await startGrpcServer([method]);
  // On a busy machine a deadline may pass before its call has reached the server.
  while (begun === 0)
    await assert.rejects(running.client.unary(ECHO_PATH, HELLO, { deadlineMs: 50 }), {
      code: status.DEADLINE_EXCEEDED,
    });
  await aborted.promise;
});

test('a caller that cancels aborts the signal', async () => {
  const aborted = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const method = unary((_request, call) => {
    call.signal.addEventListener('abort', () => aborted.resolve());
    started.resolve();
    return aborted.promise.then(() => HELLO);
  });
  await using running = await startGrpcServer([method]);
  const { client } = running.client;
  const cancelled = Promise.withResolvers<number | undefined>();
  const call = client.makeUnaryRequest(
    ECHO_PATH,
    serialize,
    (bytes) => bytes,
    HELLO,
    (error) => cancelled.resolve(error?.code),
  );
  await started.promise;
  call.cancel();
  assert.equal(await cancelled.promise, status.CANCELLED);
  await aborted.promise;
});

test('a client-streaming method reads every message and answers once', async () => {
  const method = clientStream('Join', () => {
    const parts: Uint8Array[] = [];
    return { take: (message) => void parts.push(message), finish: async () => Buffer.concat(parts) };
  });
  await using running = await startGrpcServer([method]);
  const messages = Array.from({ length: 100 }, (_, index) => Buffer.from(`${index},`));
  const answer = await running.client.clientStream(`/${SERVICE}/Join`, messages);
  assert.equal(answer.toString(), messages.join(''));
});

test('a port that is taken is said plainly', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address() as { port: number };
  await assert.rejects(startGrpcServer([echo], { port }), new RegExp(`Cannot listen for gRPC on 127.0.0.1:${port}`));
  taken.close();
});

test('calls are counted by service, method and code', async () => {
  const method = unary((request) => (request.length === 0 ? fail('boom') : request));
  await using running = await startGrpcServer([method]);
  await running.client.unary(ECHO_PATH, HELLO);
  await running.client.unary(ECHO_PATH, HELLO);
  await running.client.unary(ECHO_PATH, Buffer.alloc(0)).catch(() => {});
  const text = await running.metrics.metrics();
  assert.match(text, /trivet_grpc_calls_total\{service="test.v1.EchoService",method="Echo",code="OK"\} 2/);
  assert.match(text, /trivet_grpc_calls_total\{service="test.v1.EchoService",method="Echo",code="INTERNAL"\} 1/);
});
