import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { connectRaw, type RawClient, serialize } from '../../test/support/grpc-client.ts';
import { Failure, type FailureCode } from '../errors.ts';
import { createLog } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { realWorld } from '../world.ts';
import { requireCaller } from './require-caller.ts';
import { type GrpcServer, type GrpcServerParts, openGrpcServer } from './server.ts';
import type { GrpcCall, GrpcMethod } from './service.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-grpc-'));
after(() => rmSync(folder, { recursive: true }));

const SERVICE = 'test.v1.EchoService';

interface Running extends AsyncDisposable {
  readonly server: GrpcServer;
  readonly client: RawClient;
  readonly logged: Record<string, unknown>[];
  readonly metrics: Metrics;
}

async function start(methods: GrpcMethod[], parts: Partial<GrpcServerParts> = {}): Promise<Running> {
  const logged: Record<string, unknown>[] = [];
  const metrics = createMetrics();
  const server = await openGrpcServer({
    services: [{ name: SERVICE, methods }],
    host: '127.0.0.1',
    port: 0,
    maxMessageBytes: 100_000,
    log: createLog('info', { write: (line) => logged.push(JSON.parse(line)) }),
    metrics,
    world: realWorld,
    ...parts,
  });
  const client = connectRaw(`127.0.0.1:${server.port}`);
  return {
    server,
    client,
    logged,
    metrics,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await server.drain(1000);
    },
  };
}

function unary(handle: (request: Uint8Array, call: GrpcCall) => Uint8Array | Promise<Uint8Array>): GrpcMethod {
  return { kind: 'unary', name: 'Echo', handle };
}

const echo = unary((request) => request);
const PATH = `/${SERVICE}/Echo`;
const HELLO = Buffer.from('hello');

test('a unary method gets the bytes and its bytes are the answer', async () => {
  await using running = await start([echo]);
  assert.equal((await running.client.unary(PATH, HELLO)).toString(), 'hello');
});

test('synchronous answers out of one buffer do not mix', async () => {
  const shared = new Uint8Array(4);
  const method = unary((request) => {
    shared.set(request);
    return shared;
  });
  await using running = await start([method]);
  const requests = Array.from({ length: 200 }, (_, index) => Buffer.from(String(index).padStart(4)));
  const answers = await Promise.all(requests.map((request) => running.client.unary(PATH, request)));
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
  await using running = await start([method]);
  for (const [code, expected] of Object.entries(statusOf)) {
    const error = await running.client.unary(PATH, Buffer.from(code)).catch((thrown) => thrown);
    assert.equal(error.code, expected, code);
    if (code !== 'internal') assert.equal(error.details, `Cannot: ${code} größer`);
  }
  assert.equal(running.logged.length, 1);
});

test('a refusal that may be retried says when', async () => {
  const method = unary(() => Promise.reject(new Failure('too_many', 'Slow down', { retryAfterSeconds: 1.5 })));
  await using running = await start([method]);
  const error = await running.client.unary(PATH, HELLO).catch((thrown) => thrown);
  assert.equal(error.metadata.get('grpc-retry-pushback-ms')[0], '1500');
});

for (const [how, method] of [
  ['thrown', unary(() => fail('secret'))],
  ['rejected', unary(() => Promise.reject(new Error('secret')))],
] as const)
  test(`an unexpected error that is ${how} is INTERNAL without its text, and logged with the trace id`, async () => {
    await using running = await start([method]);
    const traceId = 'ab'.repeat(16);
    const metadata = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    const error = await running.client.unary(PATH, HELLO, { metadata }).catch((thrown) => thrown);
    assert.equal(error.code, status.INTERNAL);
    assert.equal(error.details, `Internal error, trace id ${traceId}`);
    assert.equal(running.logged[0]?.traceId, traceId);
    assert.match(JSON.stringify(running.logged[0]), /secret/);
  });

function fail(message: string): never {
  throw new Error(message);
}

test('an unknown method is UNIMPLEMENTED', async () => {
  await using running = await start([echo]);
  await assert.rejects(running.client.unary(`/${SERVICE}/None`, HELLO), { code: status.UNIMPLEMENTED });
});

test('a message above the limit is RESOURCE_EXHAUSTED', async () => {
  await using running = await start([echo]);
  await assert.rejects(running.client.unary(PATH, Buffer.alloc(100_001)), { code: status.RESOURCE_EXHAUSTED });
  assert.equal((await running.client.unary(PATH, Buffer.alloc(100_000))).length, 100_000);
});

test('a deadline that passes aborts the signal and ends the call', async () => {
  const aborted = Promise.withResolvers<void>();
  const method = unary((_request, call) => {
    call.signal.addEventListener('abort', () => aborted.resolve());
    return aborted.promise.then(() => HELLO);
  });
  await using running = await start([method]);
  await assert.rejects(running.client.unary(PATH, HELLO, { deadlineMs: 50 }), { code: status.DEADLINE_EXCEEDED });
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
  await using running = await start([method]);
  const { client } = running.client;
  const cancelled = Promise.withResolvers<number | undefined>();
  const call = client.makeUnaryRequest(
    PATH,
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
  const method: GrpcMethod = {
    kind: 'client-stream',
    name: 'Join',
    handle: async (requests) => {
      const parts: Uint8Array[] = [];
      for await (const request of requests) parts.push(request);
      return Buffer.concat(parts);
    },
  };
  await using running = await start([method]);
  const messages = Array.from({ length: 100 }, (_, index) => Buffer.from(`${index},`));
  const answer = await running.client.clientStream(`/${SERVICE}/Join`, messages);
  assert.equal(answer.toString(), messages.join(''));
});

test('a drain ends streams early, so that what was taken is answered', async () => {
  const taken = Promise.withResolvers<void>();
  const method: GrpcMethod = {
    kind: 'client-stream',
    name: 'Join',
    handle: async (requests) => {
      let count = 0;
      for await (const _ of requests) {
        count += 1;
        if (count === 2) taken.resolve();
      }
      return Buffer.from(String(count));
    },
  };
  await using running = await start([method]);
  const answer = Promise.withResolvers<string>();
  const call = running.client.client.makeClientStreamRequest(
    `/${SERVICE}/Join`,
    serialize,
    (bytes) => bytes,
    (error, bytes) => (error === null ? answer.resolve(String(bytes)) : answer.reject(error)),
  );
  call.write(HELLO);
  call.write(HELLO);
  await taken.promise;
  await running.server.drain(60_000);
  assert.equal(await answer.promise, '2');
});

test('a drain waits for a call under way and refuses new ones', async () => {
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const method = unary(() => {
    started.resolve();
    return finish.promise.then(() => HELLO);
  });
  await using running = await start([method]);
  const answer = running.client.unary(PATH, HELLO);
  await started.promise;
  const drained = running.server.drain(60_000);
  finish.resolve();
  assert.equal(String(await answer), 'hello');
  await drained;
  await assert.rejects(running.client.unary(PATH, HELLO, { deadlineMs: 200 }));
});

test('a drain cuts at its deadline what will not end', async () => {
  const started = Promise.withResolvers<void>();
  const method = unary(() => {
    started.resolve();
    return new Promise(() => {});
  });
  await using running = await start([method]);
  const answer = running.client.unary(PATH, HELLO).catch((error) => error.code);
  await started.promise;
  await running.server.drain(20);
  assert.ok([status.CANCELLED, status.UNAVAILABLE].includes(await answer));
});

const health = protobuf.loadSync('proto/grpc/health/v1/health.proto');
const healthRequest = health.lookupType('grpc.health.v1.HealthCheckRequest');
const healthResponse = health.lookupType('grpc.health.v1.HealthCheckResponse');
const healthList = health.lookupType('grpc.health.v1.HealthListResponse');

function askHealth(service: string): Buffer {
  return Buffer.from(healthRequest.encode({ service }).finish());
}

function readHealth(bytes: Uint8Array): string {
  return healthResponse.toObject(healthResponse.decode(bytes), { enums: String, defaults: true }).status;
}

test('health says whether the server and each service serve', async () => {
  await using running = await start([echo]);
  const check = async (service: string) =>
    readHealth(await running.client.unary('/grpc.health.v1.Health/Check', askHealth(service)));
  assert.equal(await check(''), 'NOT_SERVING');
  running.server.setServing(true);
  assert.equal(await check(''), 'SERVING');
  assert.equal(await check(SERVICE), 'SERVING');
  await assert.rejects(check('no.such.Service'), { code: status.NOT_FOUND });
  const list = await running.client.unary('/grpc.health.v1.Health/List', Buffer.alloc(0));
  assert.deepEqual(healthList.toObject(healthList.decode(list), { enums: String }), {
    statuses: { '': { status: 'SERVING' }, [SERVICE]: { status: 'SERVING' } },
  });
});

test('a health watch tells each change, and a drain ends it', async () => {
  await using running = await start([echo]);
  running.server.setServing(true);
  const call = running.client.client.makeServerStreamRequest(
    '/grpc.health.v1.Health/Watch',
    serialize,
    readHealth,
    askHealth(SERVICE),
  );
  const told: string[] = [];
  for await (const state of call) {
    told.push(state);
    if (told.length === 1) running.server.setServing(false);
    if (told.length === 2) running.server.setServing(true);
    if (told.length === 3) void running.server.drain(60_000);
  }
  assert.deepEqual(told.slice(0, 3), ['SERVING', 'NOT_SERVING', 'SERVING']);
});

test('a health watch of an unknown service says so and stays', async () => {
  await using running = await start([echo]);
  const call = running.client.client.makeServerStreamRequest(
    '/grpc.health.v1.Health/Watch',
    serialize,
    readHealth,
    askHealth('no.such.Service'),
  );
  call.on('error', () => {});
  const [first] = await call.take(1).toArray();
  assert.equal(first, 'SERVICE_UNKNOWN');
});

test('a unix socket is served too, taken over when stale, refused when alive', async () => {
  const unixSocket = join(folder, 'grpc.sock');
  const method = unary((_request, call) => Buffer.from(`${call.isLoopback} ${call.peerAddress}`));
  writeFileSync(unixSocket, '');
  {
    await using _running = await start([method], { unixSocket });
    using client = connectRaw(`unix:${unixSocket}`);
    assert.equal(String(await client.unary(PATH, HELLO)), 'true undefined');
    await assert.rejects(start([method], { unixSocket }), /another program does/);
  }
  assert.equal(existsSync(unixSocket), false);
});

test('a port that is taken is said plainly', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => taken.once('listening', resolve));
  const { port } = taken.address() as { port: number };
  await assert.rejects(start([echo], { port }), new RegExp(`Cannot listen for gRPC on 127.0.0.1:${port}`));
  taken.close();
});

test('TLS serves callers that trust the certificate, and mutual TLS only those that show one', async () => {
  const files = createCertificates();
  const tls = { certFile: files.serverCert, keyFile: files.serverKey };
  const ca = readFileSync(files.caCert);
  {
    await using running = await start([echo], { tls });
    using client = connectRaw(`localhost:${running.server.port}`, { ca });
    assert.equal(String(await client.unary(PATH, HELLO)), 'hello');
    await assert.rejects(running.client.unary(PATH, HELLO, { deadlineMs: 300 }));
  }
  await using running = await start([echo], { tls: { ...tls, clientCaFile: files.caCert } });
  using stranger = connectRaw(`localhost:${running.server.port}`, { ca });
  await assert.rejects(stranger.unary(PATH, HELLO, { deadlineMs: 300 }));
  const pair = { key: readFileSync(files.clientKey), cert: readFileSync(files.clientCert) };
  using client = connectRaw(`localhost:${running.server.port}`, { ca, ...pair });
  assert.equal(String(await client.unary(PATH, HELLO)), 'hello');
});

test('a TLS file that cannot be read is named', async () => {
  const tls = { certFile: join(folder, 'none.pem'), keyFile: join(folder, 'none.pem') };
  await assert.rejects(start([echo], { tls }), /Cannot read the TLS file ".*none\.pem"/);
});

test('a renewed certificate is taken up without a restart, once both of its files are there', async () => {
  const [before, next] = [createCertificates(), createCertificates()];
  const tls = { certFile: join(folder, 'live-cert.pem'), keyFile: join(folder, 'live-key.pem') };
  copyFileSync(before.serverCert, tls.certFile);
  copyFileSync(before.serverKey, tls.keyFile);
  await using running = await start([echo], { tls, tlsCheckMs: 5 });
  using old = connectRaw(`localhost:${running.server.port}`, { ca: readFileSync(before.caCert) });
  assert.equal(String(await old.unary(PATH, HELLO)), 'hello');
  const isLogged = (text: string) => running.logged.some(({ msg }) => msg === text);
  copyFileSync(next.serverCert, tls.certFile);
  while (!isLogged('gRPC keeps its certificate')) await realWorld.sleep(5);
  copyFileSync(next.serverKey, tls.keyFile);
  while (!isLogged('gRPC uses a new certificate')) await realWorld.sleep(5);
  using client = connectRaw(`localhost:${running.server.port}`, { ca: readFileSync(next.caCert) });
  assert.equal(String(await client.unary(PATH, HELLO)), 'hello');
  assert.equal(String(await old.unary(PATH, HELLO)), 'hello', 'connections there are go on');
});

test('a key that is not the certificate’s is refused at the start', async () => {
  const files = createCertificates();
  const tls = { certFile: files.serverCert, keyFile: files.clientKey };
  await assert.rejects(start([echo], { tls }), /Cannot use the TLS files ".*" and ".*": .*key/);
});

test('calls are counted by service, method and code', async () => {
  const method = unary((request) => (request.length === 0 ? fail('boom') : request));
  await using running = await start([method]);
  await running.client.unary(PATH, HELLO);
  await running.client.unary(PATH, HELLO);
  await running.client.unary(PATH, Buffer.alloc(0)).catch(() => {});
  const text = await running.metrics.metrics();
  assert.match(text, /trivet_grpc_calls_total\{service="test.v1.EchoService",method="Echo",code="OK"\} 2/);
  assert.match(text, /trivet_grpc_calls_total\{service="test.v1.EchoService",method="Echo",code="INTERNAL"\} 1/);
});

const identity = { userId: 'u', login: 'ada', isAdmin: false, scopes: [], tokenKind: 'access' } as const;
const verifyToken = (token: string) => Promise.resolve(token === 'good' ? identity : undefined);

test('a caller on loopback needs no token in mode auto, unless a proxy speaks for somebody else', async () => {
  const guard = requireCaller({ mode: 'auto', verifyToken });
  const { methods } = guard({ name: SERVICE, methods: [echo] });
  await using running = await start([...methods]);
  assert.equal(String(await running.client.unary(PATH, HELLO)), 'hello');
  const metadata = { 'x-forwarded-for': '203.0.113.7' };
  await assert.rejects(running.client.unary(PATH, HELLO, { metadata }), { code: status.UNAUTHENTICATED });
});

test('a caller that needs a token is answered only with one that is valid, on every kind of method', async () => {
  const guard = requireCaller({ mode: 'on', verifyToken });
  const join: GrpcMethod = { kind: 'client-stream', name: 'Join', handle: async () => HELLO };
  const shared = Buffer.alloc(5);
  const method = unary((request) => {
    shared.set(request);
    return shared;
  });
  const { methods } = guard({ name: SERVICE, methods: [method, join] });
  await using running = await start([...methods]);
  const metadata = { authorization: 'Bearer good' };
  const both = await Promise.all(
    ['first', 'other'].map((word) => running.client.unary(PATH, Buffer.from(word), { metadata })),
  );
  assert.deepEqual(both.map(String), ['first', 'other']);
  assert.equal(String(await running.client.clientStream(`/${SERVICE}/Join`, [], { metadata })), 'hello');
  for (const wrong of [{}, { authorization: 'Bearer bad' }, { authorization: 'Basic good' }]) {
    const refused = { code: status.UNAUTHENTICATED };
    await assert.rejects(running.client.unary(PATH, HELLO, { metadata: wrong }), refused);
    await assert.rejects(running.client.clientStream(`/${SERVICE}/Join`, [], { metadata: wrong }), refused);
  }
});

interface CertificateFiles {
  readonly caCert: string;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
}

/** An authority and two certificates that it signed. */
function createCertificates(): CertificateFiles {
  const own = mkdtempSync(join(folder, 'certificates-'));
  const path = (name: string) => join(own, name);
  const openssl = (...parameters: string[]) => execFileSync('openssl', parameters, { stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', path('ca.key'), '-out', path('ca.pem'), '-days', '2', '-subj', '/CN=ca');
  writeFileSync(path('san'), 'subjectAltName=DNS:localhost');
  for (const name of ['server', 'client']) {
    openssl('req', ...key, '-keyout', path(`${name}.key`), '-out', path(`${name}.csr`), '-subj', `/CN=${name}`);
    const signing = ['-CA', path('ca.pem'), '-CAkey', path('ca.key'), '-CAcreateserial', '-extfile', path('san')];
    openssl('x509', '-req', '-in', path(`${name}.csr`), ...signing, '-out', path(`${name}.pem`), '-days', '2');
  }
  return {
    caCert: path('ca.pem'),
    serverCert: path('server.pem'),
    serverKey: path('server.key'),
    clientCert: path('client.pem'),
    clientKey: path('client.key'),
  };
}
