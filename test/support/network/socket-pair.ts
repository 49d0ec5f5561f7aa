import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A connection, by both of its ends. */
export interface SocketPair extends Disposable {
  readonly client: Socket;
  readonly accepted: Socket;
}

export async function openSocketPair(): Promise<SocketPair> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect(typeof address === 'object' ? address!.port : 0, '127.0.0.1');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  server.close();
  const close = (): void => void [client.destroy(), accepted.destroy()];
  return { client, accepted, [Symbol.dispose]: close };
}
