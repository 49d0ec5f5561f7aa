/** `clients/typescript` over TLS, and its refusal to send a token in clear. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { connectGrpc, type GrpcOptions } from '../../clients/typescript/grpc-client.ts';
import { connectHttp } from '../../clients/typescript/http-client.ts';
import { createRouter } from '../../clients/typescript/router.ts';
import { createCertificate } from '../support/basics/certificate.ts';
import { startProgram } from '../support/programs/start-program.ts';

async function chooseOnce(address: string, options: GrpcOptions) {
  const router = createRouter({ client: connectGrpc(address, options), model: 'qwen3-32b', deadlineMs: 30_000 });
  const choice = await router.choose(1000, ['10.0.0.1']);
  await router.close();
  return choice;
}

test('the TypeScript client calls over TLS, and over mTLS with its certificate', async () => {
  const { certFile, keyFile } = createCertificate();
  const [ca, key] = [readFileSync(certFile), readFileSync(keyFile)];
  const settings = { PARTS: 'prediction', GRPC_TLS_CERT_FILE: certFile, GRPC_TLS_KEY_FILE: keyFile };
  await using program = await startProgram({ ...settings, GRPC_TLS_CLIENT_CA_FILE: certFile });
  const address = program.grpcAddress.replace('127.0.0.1', 'localhost');
  const choice = await chooseOnce(address, { token: 'any', tls: { ca, cert: ca, key } });
  assert.deepEqual([choice.modelVersion, choice.error], ['prior@1', undefined]);
  await using open = await startProgram(settings);
  const openAddress = open.grpcAddress.replace('127.0.0.1', 'localhost');
  assert.equal((await chooseOnce(openAddress, { tls: { ca } })).modelVersion, 'prior@1');
  // Node trusts no certificate that signs itself.
  assert.match(String((await chooseOnce(openAddress, { tls: true })).error), /UNAVAILABLE/);
});

test('connectGrpc() sends a token over TLS, within this machine, or where an option allows it', async () => {
  const refused = [
    '10.0.0.5:50051',
    'dns:///trivet:50051',
    '127.0.0.1.example:50051',
    'dns://localhost:53/trivet:50051',
  ];
  for (const address of refused)
    assert.throws(() => connectGrpc(address, { token: 'secret' }), /Cannot send the token to .* without TLS/);
  const clients = [
    ...['127.0.0.1:1', 'localhost:1', '[::1]:1', 'dns:///localhost:1', 'unix:///nowhere'].map((address) =>
      connectGrpc(address, { token: 'secret' }),
    ),
    connectGrpc('10.0.0.5:50051'),
    connectGrpc('10.0.0.5:50051', { token: 'secret', allowsTokenInClear: true }),
    connectGrpc('10.0.0.5:50051', { token: 'secret', tls: true }),
  ];
  for (const client of clients) await client.close();
});

test('connectHttp() sends a token over TLS, within this machine, or where an option allows it', async () => {
  for (const url of ['http://10.0.0.5:8080', 'http://trivet', 'HTTP://127.0.0.1.example/', 'http://127.0.0.1@trivet/'])
    assert.throws(() => connectHttp(url, { token: 'secret' }), /Cannot send the token to .* without TLS/);
  const clients = [
    ...['http://127.0.0.1:1', 'http://localhost:1/', 'http://[::1]:1', 'https://trivet'].map((url) =>
      connectHttp(url, { token: 'secret' }),
    ),
    connectHttp('http://10.0.0.5:8080'),
    connectHttp('http://10.0.0.5:8080', { token: 'secret', allowsTokenInClear: true }),
  ];
  for (const client of clients) await client.close();
});
