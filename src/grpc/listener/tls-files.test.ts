import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { waitUntil } from '../../../test/support/basics/wait-until.ts';
import { connectRaw } from '../../../test/support/grpc/grpc-client.ts';
import { ECHO_PATH, echo, HELLO, SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import type { GrpcMethod } from '../call/service.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-grpc-'));
after(() => rmSync(folder, { recursive: true }));

const MISSED_PATH = `/${SERVICE}/Missed`;
const missed: GrpcMethod = {
  kind: 'unary',
  name: 'Missed',
  handle: () => assert.fail('a call over a connection that must not be was handled'),
};

test('TLS serves callers that trust the certificate, and mutual TLS only those that show one', async () => {
  const files = createCertificates();
  const tls = { certFile: files.serverCert, keyFile: files.serverKey };
  const ca = readFileSync(files.caCert);
  {
    await using running = await startGrpcServer([echo, missed], { tls });
    using client = connectRaw(`localhost:${running.server.port}`, { ca });
    assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
    await assert.rejects(running.client.unary(MISSED_PATH, HELLO), { code: status.UNAVAILABLE });
  }
  await using running = await startGrpcServer([echo, missed], { tls: { ...tls, clientCaFile: files.caCert } });
  using stranger = connectRaw(`localhost:${running.server.port}`, { ca });
  await assert.rejects(stranger.unary(MISSED_PATH, HELLO), { code: status.UNAVAILABLE });
  const pair = { key: readFileSync(files.clientKey), cert: readFileSync(files.clientCert) };
  using client = connectRaw(`localhost:${running.server.port}`, { ca, ...pair });
  assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
});

test('a TLS file that cannot be read is named', async () => {
  const tls = { certFile: join(folder, 'none.pem'), keyFile: join(folder, 'none.pem') };
  await assert.rejects(startGrpcServer([echo], { tls }), /Cannot read the TLS file ".*none\.pem"/);
});

test('a renewed certificate is taken up without a restart, once both of its files are there', async () => {
  const [before, next] = [createCertificates(), createCertificates()];
  const tls = { certFile: join(folder, 'live-cert.pem'), keyFile: join(folder, 'live-key.pem') };
  copyFileSync(before.serverCert, tls.certFile);
  copyFileSync(before.serverKey, tls.keyFile);
  await using running = await startGrpcServer([echo], { tls, tlsCheckMs: 5 });
  using old = connectRaw(`localhost:${running.server.port}`, { ca: readFileSync(before.caCert) });
  assert.equal(String(await old.unary(ECHO_PATH, HELLO)), 'hello');
  const isLogged = (text: string) => running.logged.some(({ msg }) => msg === text);
  copyFileSync(next.serverCert, tls.certFile);
  await waitUntil(() => isLogged('gRPC keeps its certificate'));
  copyFileSync(next.serverKey, tls.keyFile);
  await waitUntil(() => isLogged('gRPC uses a new certificate'));
  using client = connectRaw(`localhost:${running.server.port}`, { ca: readFileSync(next.caCert) });
  assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
  assert.equal(String(await old.unary(ECHO_PATH, HELLO)), 'hello', 'connections there are go on');
});

test('a key that is not the certificate’s is refused at the start', async () => {
  const files = createCertificates();
  const tls = { certFile: files.serverCert, keyFile: files.clientKey };
  await assert.rejects(startGrpcServer([echo], { tls }), /Cannot use the TLS files ".*" and ".*": .*key/);
});

/** Files that Node reads in part, or not at all, without an error. */
const damagedAuthorities: readonly [title: string, damage: (pem: string) => string, reason: RegExp][] = [
  ['nothing', () => '', /holds no certificate in PEM/],
  ['text alone', () => 'no certificate', /holds no certificate in PEM/],
  ['a certificate that is cut off', (pem) => pem.slice(0, pem.length / 2), /its certificate 1 is cut off/],
  ['a second certificate that is cut off', (pem) => pem + pem.slice(0, pem.length / 2), /its certificate 2 is cut off/],
  ['a certificate without one of its lines', (pem) => pem.replace(/\n[A-Za-z0-9+/]{64}\n/, '\n'), /Cannot use/],
];

for (const [title, damage, reason] of damagedAuthorities)
  test(`a file of authorities for clients that has ${title} is refused`, async () => {
    const files = createCertificates();
    const clientCaFile = join(folder, 'damaged-ca.pem');
    writeFileSync(clientCaFile, damage(readFileSync(files.caCert, 'utf8')));
    const tls = { certFile: files.serverCert, keyFile: files.serverKey, clientCaFile };
    await assert.rejects(startGrpcServer([echo], { tls }), (error: Error) => {
      assert.match(error.message, /^Cannot use the TLS file ".*damaged-ca\.pem": /);
      assert.match(error.message, reason);
      return true;
    });
  });

test('authorities for clients stay when their file is cut off, and change once it is whole', async () => {
  const [before, next] = [createCertificates(), createCertificates()];
  const clientCaFile = join(folder, 'live-ca.pem');
  copyFileSync(before.caCert, clientCaFile);
  const tls = { certFile: before.serverCert, keyFile: before.serverKey, clientCaFile };
  await using running = await startGrpcServer([echo], { tls, tlsCheckMs: 5 });
  const isLogged = (text: string) => running.logged.some(({ msg }) => msg === text);
  const call = async ({ clientKey, clientCert }: CertificateFiles) => {
    const pair = { key: readFileSync(clientKey), cert: readFileSync(clientCert) };
    using client = connectRaw(`localhost:${running.server.port}`, { ca: readFileSync(before.caCert), ...pair });
    return String(await client.unary(ECHO_PATH, HELLO));
  };
  writeFileSync(clientCaFile, readFileSync(before.caCert).subarray(0, 200));
  await waitUntil(() => isLogged('gRPC keeps its certificate') || isLogged('gRPC uses a new certificate'));
  assert.equal(await call(before), 'hello');
  const trusted = execFileSync('openssl', ['x509', '-in', next.caCert, '-trustout']);
  writeFileSync(
    clientCaFile,
    Buffer.concat([Buffer.from('# two authorities\n'), readFileSync(before.caCert), trusted]),
  );
  await waitUntil(() => isLogged('gRPC uses a new certificate'));
  assert.equal(await call(before), 'hello');
  assert.equal(await call(next), 'hello');
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
