import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startDnsServer } from '../../../../test/support/network/dns-server.ts';
import { deliveryTo, openSender } from '../../../../test/support/webhooks/test-sender.ts';
import type { SendReport } from './send-report.ts';

const certificates = mkdtempSync(join(tmpdir(), 'trivet-tls-'));
after(() => rmSync(certificates, { recursive: true, force: true }));

interface Pair {
  readonly key: string;
  readonly cert: string;
}

function makeCertificate(name: string, days = 30): Pair {
  const [key, signing, cert] = ['key', 'csr', 'pem'].map((ending) => join(certificates, `${name}.${ending}`)) as [
    string,
    string,
    string,
  ];
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  openssl('req', '-new', ...curve, '-keyout', key, '-out', signing, ...subject);
  const lifetime = ['-days', String(days), '-copy_extensions', 'copy'];
  openssl('x509', '-req', '-in', signing, '-signkey', key, ...lifetime, '-out', cert);
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

async function sendOverTls(served: Pair, ca: string | undefined, times = 1): Promise<SendReport> {
  await using dns = await startDnsServer();
  dns.records.set('tls.example.com', ['127.0.0.1']);
  const server = createTlsServer(served, (incoming, response) => {
    incoming.resume();
    response.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await using sender = openSender({ resolver: dns.resolver, ...(ca !== undefined && { ca: [ca] }) });
  let report: SendReport | undefined;
  for (let count = 0; count < times; count += 1)
    report = await sender.send(deliveryTo(`https://tls.example.com:${port}/hook`));
  assert.ok(sender.connections <= 1);
  server.closeAllConnections();
  server.close();
  return report!;
}

test('TLS goes to the vetted address and checks the name', async () => {
  const pair = makeCertificate('tls.example.com');
  const report = await sendOverTls(pair, pair.cert);
  assert.equal(report.status, 200);
  assert.notEqual(report.timingsMs.tls, null);
});

test('a name with the dot of the root is asked for without it', async () => {
  await using dns = await startDnsServer();
  dns.records.set('tls.example.com', ['127.0.0.1']);
  const pair = makeCertificate('tls.example.com');
  const names: unknown[] = [];
  const server = createTlsServer(pair, (_, response) => void response.end('ok'));
  server.on('secureConnection', (socket) => names.push(socket.servername));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await using sender = openSender({ resolver: dns.resolver, ca: [pair.cert] });
  const report = await sender.send(deliveryTo(`https://tls.example.com.:${port}/hook`));
  server.close().closeAllConnections();
  assert.deepEqual([report.status, names], [200, ['tls.example.com']]);
});

test('a self-signed, an expired and another name’s certificate are refused', async () => {
  const selfSigned = makeCertificate('tls.example.com');
  assert.match((await sendOverTls(selfSigned, undefined)).reason ?? '', /certificate or TLS error/);
  const other = makeCertificate('other.example.com');
  assert.match((await sendOverTls(other, other.cert)).reason ?? '', /certificate or TLS error/);
  const expired = makeCertificate('tls.example.com', -1);
  assert.match((await sendOverTls(expired, expired.cert)).reason ?? '', /certificate or TLS error/);
});

test('refused certificates leave nothing behind', async () => {
  const selfSigned = makeCertificate('tls.example.com');
  assert.match((await sendOverTls(selfSigned, undefined, 200)).reason ?? '', /certificate or TLS error/);
});
