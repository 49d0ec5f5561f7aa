/** Reads the certificate authorities that deliveries trust besides those of Node (WEBHOOK_CA_FILE). */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates } from 'node:tls';
import { describeError, Failure } from '../../../errors.ts';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The authorities whose certificates receivers may have: the public ones and those of a file (PEM). */
export function readAuthorities(file: string | undefined): readonly string[] | undefined {
  if (file === undefined) return undefined;
  return [...getCACertificates('default'), ...readCertificates(file)];
}

/** Throws `invalid` when the file has none: otherwise only failing deliveries would show it. */
function readCertificates(file: string): string[] {
  try {
    const certificates = readFileSync(file, 'utf8').match(CERTIFICATE) ?? [];
    if (certificates.length === 0) throw new Error('it holds no certificate in PEM');
    for (const certificate of certificates) new X509Certificate(certificate);
    return certificates;
  } catch (cause) {
    throw new Failure(
      'invalid',
      `Cannot start: WEBHOOK_CA_FILE "${file}" cannot be used: ${describeError(cause)}`,
      {},
      {
        cause,
      },
    );
  }
}
