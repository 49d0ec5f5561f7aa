/**
 * A receiver on several ports, in a separate process, that records when each delivery arrived. It implements only the HTTP that
 * the engines need, so that its own cost is small compared with theirs.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';

export interface ReceiverCommand {
  readonly kind: 'listen' | 'count' | 'report';
  readonly ports?: number;
  /** How long the last port takes to answer. */
  readonly slowMs?: number;
}

export interface Arrival {
  readonly uuid: string;
  readonly atMs: number;
  readonly isSlow: boolean;
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok';

const arrivals: Arrival[] = [];
/** A delivery that is sent twice counts once. */
const healthyUuids = new Set<string>();

async function listen(slowMs: number): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => serve(socket, slowMs));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

function serve(socket: Socket, slowMs: number): void {
  let pending = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1');
    for (;;) {
      const headEnd = pending.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const head = pending.slice(0, headEnd);
      const length = headEnd + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (pending.length < length) return;
      pending = pending.slice(length);
      countRequest(head, slowMs > 0);
      if (slowMs === 0) socket.write(ANSWER);
      else setTimeout(() => socket.write(ANSWER), slowMs);
    }
  });
}

function countRequest(head: string, isSlow: boolean): void {
  const uuid = /x-gitcode-delivery: (\S+)/i.exec(head)?.[1] ?? '';
  arrivals.push({ uuid, atMs: performance.timeOrigin + performance.now(), isSlow });
  if (!isSlow) healthyUuids.add(uuid);
}

process.on('message', (command: ReceiverCommand) => {
  void handle(command);
});

async function handle({ kind, ports = 1, slowMs = 0 }: ReceiverCommand): Promise<void> {
  if (kind === 'report') process.send?.({ kind: 'arrivals', arrivals });
  if (kind === 'count') process.send?.({ kind: 'counted', count: healthyUuids.size });
  if (kind !== 'listen') return;
  const list: number[] = [];
  for (let count = 0; count < ports; count += 1) list.push(await listen(count === ports - 1 ? slowMs : 0));
  process.send?.({ kind: 'listening', ports: list });
}
