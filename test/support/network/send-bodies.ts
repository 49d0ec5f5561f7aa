/** A thread that sends the same bytes on many connections at once, and reports how many were answered with 200. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

interface Sending {
  readonly port: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

async function send({ port, bytes }: Sending): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(bytes);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(answer).startsWith('HTTP/1.1 200 ');
}

const sending = workerData as Sending;
const answers = await Promise.all(Array.from({ length: sending.count }, () => send(sending)));
parentPort!.postMessage(answers.filter(Boolean).length);
