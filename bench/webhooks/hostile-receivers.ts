/** Hostile receivers in a separate process, each kind on its own port. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';

/** The process sends this message once all receivers listen. */
export interface HostileReceivers {
  readonly kind: 'listening';
  readonly urlByKind: Readonly<Record<string, string>>;
  /** Certificates to trust, so that they are refused for their fault and not for their signer. */
  readonly trusted: string;
}

type Misbehave = (socket: Socket) => void;

/** Once the request has begun; the rest of it is thrown away. */
function onRequest(misbehave: Misbehave): Misbehave {
  return (socket) => {
    socket.once('data', () => misbehave(socket));
    socket.resume();
  };
}

function repeat(socket: Socket, everyMs: number, text: string | Buffer): void {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.once('close', () => clearInterval(timer));
}

function pour(socket: Socket, chunk: string | Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

const bomb = gzipSync(Buffer.alloc(100_000_000));
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

const MISBEHAVIOURS: Readonly<Record<string, Misbehave>> = {
  'stays silent': (socket) => void socket.resume(),
  'never reads': (socket) => void socket.pause(),
  'slow headers': onRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    repeat(socket, 500, 'X-Slow: 1\r\n');
  }),
  'flood of 103': onRequest((socket) => pour(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n')),
  'one byte every 500 ms': onRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n');
    repeat(socket, 500, 'a');
  }),
  'endless body': onRequest((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    pour(socket, `4000\r\n${'b'.repeat(0x4000)}\r\n`);
  }),
  'gzip bomb': onRequest((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  }),
  'header of 1 MB': onRequest((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nX-Large: ${'c'.repeat(1_000_000)}\r\n\r\n`);
  }),
  RST: onRequest((socket) => void socket.resetAndDestroy()),
  garbage: onRequest((socket) => void socket.end(Buffer.from('\x00\xff\x16\x03 garbage\r\n\r\n\r\n', 'latin1'))),
  'status 999': onRequest((socket) => void socket.end('HTTP/1.1 999 Strange\r\nContent-Length: 0\r\n\r\n')),
  'late extra answer': (socket) => {
    socket.on('data', () => {
      socket.write(OK);
      setTimeout(() => socket.write(OK), 5);
    });
  },
  'absurd Retry-After': onRequest((socket) => {
    socket.end(`HTTP/1.1 503 No\r\nRetry-After: ${'9'.repeat(300)}\r\nContent-Length: 0\r\n\r\n`);
  }),
};

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function serveBadly(misbehave: Misbehave): Server {
  return createServer((socket) => {
    socket.on('error', () => {});
    misbehave(socket);
  });
}

interface Certificate {
  readonly key: string;
  readonly cert: string;
}

function makeCertificate(folder: string, subjectAltName: string, days: number): Certificate {
  const [key, request, cert] = ['key', 'csr', 'pem'].map((ending) => join(folder, ending)) as [string, string, string];
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-new',
    ...curve,
    '-keyout',
    key,
    '-out',
    request,
    '-subj',
    '/CN=bench',
    '-addext',
    `subjectAltName=${subjectAltName}`,
  );
  openssl(
    'x509',
    '-req',
    '-in',
    request,
    '-signkey',
    key,
    '-out',
    cert,
    '-days',
    String(days),
    '-copy_extensions',
    'copy',
  );
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}

const urlByKind: Record<string, string> = {
  // A range for documentation: packets to it are not answered, or the network reports at once that it is unreachable.
  'never accepts': 'http://192.0.2.1:8080/',
};
for (const [kind, misbehave] of Object.entries(MISBEHAVIOURS))
  urlByKind[kind] = `http://127.0.0.1:${await listen(serveBadly(misbehave))}/`;

const folder = mkdtempSync(join(tmpdir(), 'trivet-hostile-'));
const certificates: Record<string, Certificate> = {
  'expired certificate': makeCertificate(folder, 'IP:127.0.0.1', -1),
  'certificate of another': makeCertificate(folder, 'DNS:other.example.com', 30),
  'self-signed certificate': makeCertificate(folder, 'IP:127.0.0.1', 30),
};
rmSync(folder, { recursive: true });
for (const [kind, certificate] of Object.entries(certificates)) {
  const server = createTlsServer(certificate, (socket) => void socket.on('error', () => {}).end(OK));
  server.on('tlsClientError', () => {});
  urlByKind[kind] = `https://127.0.0.1:${await listen(server)}/`;
}
const trusted = ['expired certificate', 'certificate of another'].map((kind) => certificates[kind]?.cert).join('');
process.send?.({ kind: 'listening', urlByKind, trusted } satisfies HostileReceivers);
