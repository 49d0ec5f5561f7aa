import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

/** A proxy of a PostgreSQL server whose connections a test breaks: the server gets what was sent, and its answer is lost. */
export interface CutProxy {
  /** The URL leads to the same database through the proxy. */
  readonly databaseUrl: string;
  /** Closes the current connections. New ones are accepted. */
  cut(): void;
  /** Acts as if the client's process stopped after this statement: the server gets nothing more from its connection. */
  stallAfter(statementName: string): void;
  /** Closes a connection on which this text is sent, before the server gets it. */
  cutAt(text: string): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startCutProxy(databaseUrl: string): Promise<CutProxy> {
  const { pathname, searchParams } = new URL(databaseUrl.replace('@/', '@socket/'));
  const socketPath = join(searchParams.get('host')!, '.s.PGSQL.5432');
  const sockets = new Set<Socket>();
  let lastStatement: string | undefined;
  let lastText: string | undefined;
  const forward = (incoming: Socket, outgoing: Socket): void => {
    let isStalled = false;
    incoming.on('data', (chunk) => {
      if (lastText !== undefined && chunk.includes(lastText)) return void incoming.destroy();
      if (!isStalled) outgoing.write(chunk);
      isStalled ||= lastStatement !== undefined && chunk.includes(lastStatement);
    });
    incoming.on('end', () => outgoing.end());
  };
  const server = createServer((incoming) => {
    const outgoing = connect(socketPath);
    for (const [one, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    forward(incoming, outgoing);
    outgoing.pipe(incoming);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  searchParams.delete('host');
  return {
    databaseUrl: `postgres://postgres@127.0.0.1:${port}${pathname}?${searchParams.toString().replaceAll('+', '%20')}`,
    cut,
    stallAfter: (statementName) => {
      lastStatement = statementName;
    },
    cutAt: (text) => {
      lastText = text;
    },
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
