/** A TCP proxy that falls silent, as a machine without its network does: connections stay open, and no bytes pass. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface SilentProxy extends AsyncDisposable {
  /** `host:port`. */
  readonly address: string;
  /** From now on, the current connections pass no bytes on; new ones do. */
  fallSilent(): void;
}

export async function startSilentProxy(targetPort: number): Promise<SilentProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((incoming) => {
    const outgoing = connect(targetPort, '127.0.0.1');
    const pair = [incoming, outgoing] as const;
    pairs.add(pair);
    incoming.pipe(outgoing).pipe(incoming);
    for (const socket of pair)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          pairs.delete(pair);
          for (const one of pair) one.destroy();
        });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    fallSilent() {
      for (const [incoming, outgoing] of pairs) {
        // Without a receiver, what a socket reads is discarded.
        incoming.unpipe(outgoing).resume();
        outgoing.unpipe(incoming).resume();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const [incoming] of pairs) incoming.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
