import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

const KEYS = { ec: ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'], rsa: ['rsa:2048'] } as const;

/** Creates a self-signed certificate for localhost; its files are removed after the tests of the file. */
export function createCertificate(kind: keyof typeof KEYS = 'ec'): { certFile: string; keyFile: string } {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-grpc-'));
  after(() => rmSync(folder, { recursive: true }));
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  const key = ['-newkey', ...KEYS[kind], '-nodes', '-keyout', files.keyFile];
  // Go does not read the host name from the subject.
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  execFileSync('openssl', ['req', '-x509', ...key, '-out', files.certFile, ...name], { stdio: 'pipe' });
  return files;
}
