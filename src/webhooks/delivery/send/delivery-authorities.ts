/** Reads the certificate authorities that deliveries trust besides those of Node (WEBHOOK_CA_FILE). */
import { getCACertificates } from 'node:tls';
import { readCertificates } from '../../../encryption/certificates.ts';
import { describeError, Failure } from '../../../errors.ts';

/**
 * The certificate authorities that deliveries trust: the public ones and those of a file (PEM). Throws `invalid` if the file cannot be
 * used; otherwise only failing deliveries would show that.
 */
export function readAuthorities(file: string | undefined): readonly string[] | undefined {
  if (file === undefined) return undefined;
  try {
    return [...getCACertificates('default'), ...readCertificates(file)];
  } catch (cause) {
    const message = `Cannot start: WEBHOOK_CA_FILE "${file}" cannot be used: ${describeError(cause)}`;
    throw new Failure('invalid', message, {}, { cause });
  }
}
