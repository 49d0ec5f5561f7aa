/** Reads the certificates of authorities from a PEM file, and refuses a file of which Node would silently use only a part. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

const BEGIN = /(?=-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----)/;
const CERTIFICATE = /^-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/;

/**
 * Throws when the file has no certificate, or one that is cut off or damaged. Node's TLS skips unreadable parts of a list of
 * authorities without an error, so that nothing would be trusted.
 */
export function readCertificates(file: string): string[] {
  const [, ...parts] = `\n${readFileSync(file, 'utf8')}`.split(BEGIN);
  if (parts.length === 0) throw new Error('it holds no certificate in PEM');
  return parts.map((part, index) => {
    const certificate = CERTIFICATE.exec(part)?.[0];
    if (certificate === undefined) throw new Error(`its certificate ${index + 1} is cut off`);
    new X509Certificate(certificate);
    return certificate;
  });
}
