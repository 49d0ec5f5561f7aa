import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Linux assigns the ports above these to processes that bind port 0 or open a connection. So a port of this range stays free between
 * the check and its use, however many other tests run meanwhile.
 */
const [FIRST, END] = [20_000, 32_768];

/** Finds a port of loopback on which no process listens. */
export async function findFreePort(): Promise<number> {
  const [port = 0] = await findFreePorts(1);
  return port;
}

/** Finds this many different ports on which no process listens. */
export async function findFreePorts(count: number): Promise<number[]> {
  const found = new Map<number, Server>();
  while (found.size < count) {
    const port = randomInt(FIRST, END);
    const server = await listen(port);
    if (server !== undefined) found.set(port, server);
  }
  for (const server of found.values()) {
    server.close();
    await once(server, 'close');
  }
  return [...found.keys()];
}

async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
