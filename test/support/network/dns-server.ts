import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { isIPv4 } from 'node:net';

/** A little name server on loopback UDP (RFC 1035), whose answers a test can change at any time. */
export interface DnsServer extends AsyncDisposable {
  /** Addresses by name; a name that is not here does not exist. */
  readonly records: Map<string, readonly string[]>;
  /** Milliseconds until the answer about a name is sent; at once for a name that is not here. */
  readonly delays: Map<string, number>;
  readonly questions: number;
  /** Drops the next answer. */
  loseNext(): void;
  readonly resolver: Resolver;
  /** Its address as a resolver takes it. */
  readonly servers: readonly string[];
}

const TYPE_A = 1;
const TYPE_AAAA = 28;

export async function startDnsServer(): Promise<DnsServer> {
  const records = new Map<string, readonly string[]>();
  const delays = new Map<string, number>();
  const waiting = new Set<NodeJS.Timeout>();
  let questions = 0;
  let isLost = false;
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    questions += 1;
    const send = () => socket.send(answer(message, records), from.port, from.address);
    const delayMs = delays.get(readName(message, 12).name.toLowerCase()) ?? 0;
    if (!isLost && delayMs === 0) send();
    // The test wants an answer that takes long.
    if (!isLost && delayMs > 0) waiting.add(setTimeout(send, delayMs));
    isLost = false;
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  // Loopback loses no packets, so only a slow machine would reach the timeout.
  const resolver = new Resolver({ timeout: 120_000, tries: 1 });
  const servers = [`127.0.0.1:${socket.address().port}`];
  resolver.setServers(servers);
  return {
    records,
    delays,
    resolver,
    servers,
    loseNext: () => {
      isLost = true;
    },
    get questions() {
      return questions;
    },
    [Symbol.asyncDispose]: async () => {
      for (const timer of waiting) clearTimeout(timer);
      await new Promise<void>((resolve) => void socket.close(() => resolve()));
    },
  };
}

function answer(query: Buffer, records: ReadonlyMap<string, readonly string[]>): Buffer {
  const { name, end } = readName(query, 12);
  const type = query.readUInt16BE(end);
  const question = query.subarray(12, end + 4);
  const known = records.get(name.toLowerCase());
  const wanted = (known ?? []).filter((address) => isIPv4(address) === (type === TYPE_A));
  const found = type === TYPE_A || type === TYPE_AAAA ? wanted : [];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  // A response, recursion available; 3 is NXDOMAIN.
  header.writeUInt16BE(0x8180 | (known === undefined ? 3 : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(found.length, 6);
  return Buffer.concat([header, question, ...found.map((address) => resourceRecord(address, type))]);
}

function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function resourceRecord(address: string, type: number): Buffer {
  const data = type === TYPE_A ? Buffer.from(address.split('.').map(Number)) : encodeIpv6(address);
  const head = Buffer.alloc(12);
  // The name is the question's.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(0, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

function encodeIpv6(address: string): Buffer {
  const [before = '', after] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)));
  const [head, tail] = [groups(before), groups(after ?? '')];
  const all = after === undefined ? head : [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  const bytes = Buffer.alloc(16);
  for (const [index, group] of all.entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}
