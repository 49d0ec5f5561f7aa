/** A receiver on several ports, in a process of its own, that notes when each delivery came. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceiverCommand {
  readonly kind: 'listen' | 'report' | 'reset';
  readonly ports?: number;
  /** Answers of the last port take so long. */
  readonly slowMs?: number;
}

export interface Arrival {
  readonly uuid: string;
  readonly atMs: number;
  readonly port: number;
}

let arrivals: Arrival[] = [];

async function listen(slowMs: number): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      const uuid = String(request.headers['x-gitcode-delivery']);
      const atMs = performance.timeOrigin + performance.now();
      arrivals.push({ uuid, atMs, port: (server.address() as AddressInfo).port });
      if (arrivals.length % 100 === 0) process.send?.({ kind: 'count', count: arrivals.length });
      if (slowMs === 0) response.end('ok');
      else setTimeout(() => response.end('ok'), slowMs);
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

process.on('message', (command: ReceiverCommand) => {
  void handle(command);
});

async function handle({ kind, ports = 1, slowMs = 0 }: ReceiverCommand): Promise<void> {
  if (kind === 'report') process.send?.({ kind: 'arrivals', arrivals });
  if (kind === 'reset') {
    arrivals = [];
    process.send?.({ kind: 'reset' });
  }
  if (kind !== 'listen') return;
  const list: number[] = [];
  for (let count = 0; count < ports; count += 1) list.push(await listen(count === ports - 1 ? slowMs : 0));
  process.send?.({ kind: 'listening', ports: list });
}
