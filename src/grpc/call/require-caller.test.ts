import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import {
  clientStream,
  ECHO_PATH,
  echo,
  HELLO,
  SERVICE,
  startGrpcServer,
  unary,
} from '../../../test/support/grpc/grpc-server.ts';
import { requireCaller } from './require-caller.ts';

const identity = { userId: 'u', login: 'ada', isAdmin: false, scopes: ['all_user'], tokenKind: 'access' } as const;
const verifyToken = (token: string) => Promise.resolve(token === 'good' ? identity : undefined);

test('a caller on loopback needs no token in mode auto, unless a proxy forwards another client', async () => {
  const guard = requireCaller({ mode: 'auto', verifyToken }, 'predict');
  const { methods } = guard({ name: SERVICE, methods: [echo] });
  await using running = await startGrpcServer([...methods]);
  assert.equal(String(await running.client.unary(ECHO_PATH, HELLO)), 'hello');
  const metadata = { 'x-forwarded-for': '203.0.113.7' };
  await assert.rejects(running.client.unary(ECHO_PATH, HELLO, { metadata }), { code: status.UNAUTHENTICATED });
});

test('a caller that needs a token is answered only with a valid token, on every kind of method', async () => {
  const guard = requireCaller({ mode: 'on', verifyToken }, 'predict');
  const join = clientStream('Join', () => ({ finish: async () => HELLO }));
  const shared = Buffer.alloc(5);
  const method = unary((request) => {
    shared.set(request);
    return shared;
  });
  const { methods } = guard({ name: SERVICE, methods: [method, join] });
  await using running = await startGrpcServer([...methods]);
  const metadata = { authorization: 'Bearer good' };
  const both = await Promise.all(
    ['first', 'other'].map((word) => running.client.unary(ECHO_PATH, Buffer.from(word), { metadata })),
  );
  assert.deepEqual(both.map(String), ['first', 'other']);
  assert.equal(String(await running.client.clientStream(`/${SERVICE}/Join`, [], { metadata })), 'hello');
  for (const wrong of [{}, { authorization: 'Bearer bad' }, { authorization: 'Basic good' }]) {
    const refused = { code: status.UNAUTHENTICATED };
    await assert.rejects(running.client.unary(ECHO_PATH, HELLO, { metadata: wrong }), refused);
    await assert.rejects(running.client.clientStream(`/${SERVICE}/Join`, [], { metadata: wrong }), refused);
  }
});
