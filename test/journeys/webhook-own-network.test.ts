/** Only the server's configuration allows private host names and certificates of a private authority. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startProgram } from '../support/programs/start-program.ts';
import { HOOKS, PATIENTLY, useWebhookJourney } from '../support/webhooks/webhook-journey.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-authority-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const inFolder = (name: string) => join(folder, name);

function makeAuthorityAndCertificate(): void {
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...curve, '-days', '30', '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=An authority');
  const subject = ['-subj', '/CN=receiver', '-addext', 'subjectAltName=IP:127.0.0.1'];
  openssl('req', '-new', ...curve, '-keyout', 'key.pem', '-out', 'request.pem', ...subject);
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-copy_extensions', 'copy', '-days', '30'];
  openssl('x509', '-req', '-in', 'request.pem', ...signing, '-out', 'cert.pem');
}

makeAuthorityAndCertificate();
const journey = useWebhookJourney({ WEBHOOK_CA_FILE: inFolder('ca.pem'), WEBHOOK_ALLOW_HOSTS: 'jenkins,*.corp' });
const stranger = useWebhookJourney();

async function testHookOf(service: typeof journey, url: string): Promise<{ result: string; result_code: number }> {
  const hook = await service.createHook({ url });
  assert.equal((await service.call('POST', `${HOOKS}/${hook.id}/tests`))[0], 204);
  return (await service.call('GET', `${HOOKS}/${hook.id}`))[1];
}

test('WEBHOOK_CA_FILE adds an authority; without it the receiver is not trusted', PATIENTLY, async (t) => {
  const served = { key: readFileSync(inFolder('key.pem')), cert: readFileSync(inFolder('cert.pem')) };
  const server = createServer(served, (request, response) => void request.resume().on('end', () => response.end('ok')));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  assert.equal((await testHookOf(journey, url)).result_code, 200);
  const distrusted = await testHookOf(stranger, url);
  assert.equal(distrusted.result_code, 0);
  assert.match(distrusted.result, /^certificate or TLS error/);
});

const NAMES: [url: string, opened: string, closed: string][] = [
  ['http://jenkins:8080/', 'does not resolve to a public address', 'must name its host with a domain, got "jenkins"'],
  ['http://ci.lan/', 'must not name a host of a private network, got "ci.lan"', 'does not resolve to a public address'],
  ['http://localhost:8080/', 'must not be localhost', 'must not be localhost'],
  ['http://10.0.0.1/', ...twice('must not be a private or reserved address, got "10.0.0.1"')],
  ['http://[::1]/', ...twice('must not be a private or reserved address, got "::1"')],
];

function twice(reason: string): [string, string] {
  return [reason, reason];
}

test('WEBHOOK_ALLOW_HOSTS says which private names are looked up at all', PATIENTLY, async () => {
  for (const [url, opened, closed] of NAMES)
    for (const [service, reason] of [
      [journey, opened],
      [stranger, closed],
    ] as const) {
      const [status, answer] = await service.call('POST', HOOKS, { url });
      assert.deepEqual([status, answer.message], [400, `Cannot use this url: it ${reason}`]);
    }
});

test('a file without a certificate stops the start with its name and what is wrong', async () => {
  writeFileSync(inFolder('empty.pem'), 'no certificate\n');
  const damaged = readFileSync(inFolder('ca.pem'), 'utf8').replace(/\n[A-Za-z0-9+/]{64}\n/, '\n');
  writeFileSync(inFolder('damaged.pem'), damaged);
  const authority = readFileSync(inFolder('ca.pem'), 'utf8');
  writeFileSync(inFolder('cut.pem'), authority + authority.slice(0, 200));
  for (const name of ['empty.pem', 'damaged.pem', 'cut.pem', 'missing.pem'])
    await assert.rejects(
      startProgram({ WEBHOOK_CA_FILE: inFolder(name) }),
      new RegExp(`Cannot start: WEBHOOK_CA_FILE "${inFolder(name)}" cannot be used: `),
    );
});

test('a process that makes no deliveries starts without the file of their authorities', async () => {
  await using program = await startProgram({ PARTS: 'prediction', WEBHOOK_CA_FILE: inFolder('missing.pem') });
  assert.equal((await fetch(`${program.httpUrl}/healthz`)).status, 200);
});
