/** Reads the certificate and key of the listener, and watches the files: `server.ts` then reads them again. */
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { readCertificates } from '../../encryption/certificates.ts';
import { describeError, Failure } from '../../errors.ts';

/** PEM files of the listener. With `clientCaFile`, clients must show a certificate that it signed. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string;
}

export interface TlsOptions {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** If it is set, clients must show a certificate that it signed. */
  readonly ca?: string[];
}

interface TlsSettings {
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly tlsClientCaFile: string | undefined;
}

/** The files that the settings name; undefined without TLS. Throws when one of a pair is missing. */
export function nameTlsFiles({ tlsCertFile, tlsKeyFile, tlsClientCaFile }: TlsSettings): TlsFiles | undefined {
  if (tlsCertFile === undefined && tlsKeyFile === undefined && tlsClientCaFile === undefined) return undefined;
  if (tlsCertFile === undefined || tlsKeyFile === undefined) {
    throw new Failure('invalid', 'Cannot start: GRPC_TLS_CERT_FILE and GRPC_TLS_KEY_FILE must be given together');
  }
  return {
    certFile: tlsCertFile,
    keyFile: tlsKeyFile,
    ...(tlsClientCaFile === undefined ? {} : { clientCaFile: tlsClientCaFile }),
  };
}

/** Throws when a file cannot be read, the key does not belong to the certificate, or a certificate for clients is damaged. */
export function readTls({ certFile, keyFile, clientCaFile }: TlsFiles): TlsOptions {
  const pair = { cert: readPem(certFile), key: readPem(keyFile) };
  const options = clientCaFile === undefined ? pair : { ...pair, ca: readClientAuthorities(clientCaFile) };
  try {
    createSecureContext(options);
  } catch (error) {
    throw new Failure('invalid', `Cannot use the TLS files "${certFile}" and "${keyFile}": ${describeError(error)}`);
  }
  return options;
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Failure('invalid', `Cannot read the TLS file "${file}": ${describeError(error)}`);
  }
}

function readClientAuthorities(file: string): string[] {
  try {
    return readCertificates(file);
  } catch (error) {
    throw new Failure('invalid', `Cannot use the TLS file "${file}": ${describeError(error)}`);
  }
}

/** Watches the files, not their folder, since Kubernetes swaps symbolic links. Returns a function that ends the watch. */
export function watchTls(files: TlsFiles, everyMs: number, onChange: () => void): () => void {
  const paths = Object.values(files);
  for (const path of paths) watchFile(path, { interval: everyMs, persistent: false }, onChange);
  return () => {
    for (const path of paths) unwatchFile(path, onChange);
  };
}
