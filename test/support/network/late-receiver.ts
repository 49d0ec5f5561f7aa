// A receiver in a thread of its own, which answers while the thread of the test does not run. It posts its port, then a message
// for each request. It answers once the test has stored 1 in the shared word, and stores 2 when the answer has left.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

const word = new Int32Array(workerData as SharedArrayBuffer);
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    parentPort?.postMessage('received');
    Atomics.wait(word, 0, 0);
    response.end('ok', () => {
      Atomics.store(word, 0, 2);
      Atomics.notify(word, 0);
    });
  });
});
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
