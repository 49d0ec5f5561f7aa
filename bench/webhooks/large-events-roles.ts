/** The other processes of `bench/large-events.ts`: the sender of large events without pause, and their receiver. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

export interface Attack {
  readonly url: string;
  readonly token: string;
  readonly callers: number;
  readonly bytes: number;
  readonly event: object;
}

async function attack({ url, token, callers, bytes, event }: Attack): Promise<void> {
  const counts: Record<string, number> = {};
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: callers, headersTimeout: 0, bodyTimeout: 0 });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const message = 'm'.repeat(250_000);
  const commits = Array.from({ length: Math.ceil(bytes / 250_000) }, (_, index) => ({
    id: index.toString(16).padStart(40, '0'),
    message: message.slice(0, Math.floor(bytes / Math.ceil(bytes / 250_000)) - 200),
    timestamp: '2026-01-01T00:00:00Z',
    author: { name: 'Mallory', email: 'mallory@example.com' },
  }));
  const body = JSON.stringify({ ...event, commits });
  process.on('message', () => process.send?.(counts));
  const call = async () => {
    for (;;) {
      const response = await pool.request({ method: 'POST', path, headers, body });
      await response.body.dump();
      counts[response.statusCode] = (counts[response.statusCode] ?? 0) + 1;
      const waitSeconds = Number(response.headers['retry-after'] ?? 0);
      if (waitSeconds > 0) await new Promise((resolve) => setTimeout(resolve, waitSeconds * 1000));
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
}

function receive(): void {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end('ok'));
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

if (process.argv[2] === 'receive') receive();
if (process.argv[2] === 'attack') process.once('message', (order: Attack) => void attack(order));
