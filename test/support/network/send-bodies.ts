/** A thread that sends the same bytes on many connections at once, and reports once the kernel has all, and how many were answered with 200. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

interface Sending {
  readonly port: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

interface Sent {
  readonly isWritten: Promise<void>;
  readonly isAnswered: Promise<boolean>;
}

function send({ port, bytes }: Sending): Sent {
  const socket = connect(port, '127.0.0.1');
  const { promise: isWritten, resolve } = Promise.withResolvers<void>();
  socket.write(bytes, () => resolve());
  return { isWritten, isAnswered: readAnswer(socket) };
}

async function readAnswer(socket: Socket): Promise<boolean> {
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return String(answer).startsWith('HTTP/1.1 200 ');
}

const sending = workerData as Sending;
const sent = Array.from({ length: sending.count }, () => send(sending));
await Promise.all(sent.map(({ isWritten }) => isWritten));
parentPort!.postMessage('written');
const answers = await Promise.all(sent.map(({ isAnswered }) => isAnswered));
parentPort!.postMessage(answers.filter(Boolean).length);
