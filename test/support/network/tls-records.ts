/** A TLS client that writes its records by hand, which no library allows (RFC 8446, sections 5, 7.1 and 7.2). */
import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';

/** Records the bytes with which a client of Node begins. */
export async function recordHello(): Promise<Buffer> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const accepted = once(listener, 'connection') as Promise<[Socket]>;
  const client = connectTls({ port: (listener.address() as AddressInfo).port, host: '127.0.0.1' });
  client.on('error', () => {});
  const [socket] = await accepted;
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  listener.close();
  return hello;
}

const APPLICATION_DATA = 23;
const HANDSHAKE = 22;
/** Does not request the server to change its keys. */
const KEY_UPDATE = Buffer.of(24, 0, 0, 1, 0);

export interface RecordClient {
  /** Reads what the server sends. Nothing may be written to it. */
  readonly socket: TLSSocket;
  /** Changes the keys of the client this many times, and sends content after that. */
  send(keyChanges: number, content: Buffer): void;
  /** Sends each byte in a record of its own. */
  sendBytes(content: Buffer): void;
}

export async function connectRecordClient(port: number): Promise<RecordClient> {
  const raw = connect({ port, host: '127.0.0.1' });
  const options = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256', ALPNProtocols: ['h2'] } as const;
  const socket = connectTls({ socket: raw, rejectUnauthorized: false, ...options });
  socket.on('error', () => {});
  let secret = '';
  socket.on('keylog', (line: Buffer) => {
    secret = /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/.exec(String(line))?.[1] ?? secret;
  });
  await once(socket, 'secureConnect');
  // The last message of the handshake leaves after this event.
  await nextTurn();
  const writer = new RecordWriter(Buffer.from(secret, 'hex'));
  return {
    socket,
    send(keyChanges, content) {
      const changes = Array.from({ length: keyChanges }, () => writer.changeKeys());
      raw.write(Buffer.concat([...changes, writer.write(APPLICATION_DATA, content)]));
    },
    sendBytes(content) {
      raw.write(Buffer.concat(Array.from(content, (byte) => writer.write(APPLICATION_DATA, Buffer.of(byte)))));
    },
  };
}

class RecordWriter {
  #secret: Buffer;
  #records = 0;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  changeKeys(): Buffer {
    const record = this.write(HANDSHAKE, KEY_UPDATE);
    this.#secret = expand(this.#secret, 'traffic upd', 32);
    this.#records = 0;
    return record;
  }

  write(type: number, content: Buffer): Buffer {
    const nonce = expand(this.#secret, 'iv', 12);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#records) >>> 0, 8);
    this.#records += 1;
    const head = Buffer.of(APPLICATION_DATA, 3, 3, 0, 0);
    head.writeUInt16BE(content.length + 17, 3);
    const cipher = createCipheriv('aes-128-gcm', expand(this.#secret, 'key', 16), nonce).setAAD(head);
    const encrypted = cipher.update(Buffer.concat([content, Buffer.of(type)]));
    return Buffer.concat([head, encrypted, cipher.final(), cipher.getAuthTag()]);
  }
}

/** HKDF-Expand-Label, for at most 32 bytes. */
function expand(secret: Buffer, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.of(0, bytes, name.length), name, Buffer.of(0, 1)]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, bytes);
}
