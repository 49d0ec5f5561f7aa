import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { connectRaw } from '../../../test/support/grpc/grpc-client.ts';
import { ECHO_PATH, HELLO, startGrpcServer, unary } from '../../../test/support/grpc/grpc-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-grpc-'));
after(() => rmSync(folder, { recursive: true }));

test('a unix socket is served too, taken over when stale, refused when alive', async () => {
  const unixSocket = join(folder, 'grpc.sock');
  const method = unary((_request, call) => Buffer.from(`${call.isLoopback} ${call.peerAddress}`));
  leaveStaleSocket(unixSocket);
  {
    await using _running = await startGrpcServer([method], { unixSocket });
    using client = connectRaw(`unix:${unixSocket}`);
    assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'true undefined');
    await assert.rejects(startGrpcServer([method], { unixSocket }), /another program does/);
  }
  assert.equal(existsSync(unixSocket), false);
});

test('of two servers that start on one free name at once, one is refused and the other is served', async () => {
  const unixSocket = join(folder, 'raced.sock');
  const starts = await Promise.allSettled([1, 2].map(() => startGrpcServer([unary(() => HELLO)], { unixSocket })));
  await using running = new AsyncDisposableStack();
  for (const start of starts) if (start.status === 'fulfilled') running.use(start.value);
  const reasons = starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
  assert.equal(reasons.length, 1);
  assert.match(reasons[0]!, /another program does/);
  using client = connectRaw(`unix:${unixSocket}`);
  assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
});

test('a socket is refused when it is not known that no process listens on it', {
  skip: process.platform !== 'linux',
}, async () => {
  const unixSocket = join(folder, 'busy.sock');
  // It listens, but accepts no connection.
  const listen = `require('node:net').createServer().listen({ path: process.argv[1], backlog: 1 }, () => {
    require('node:fs').writeSync(1, 'x'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) })`;
  const busy = spawn(process.execPath, ['-e', listen, unixSocket], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(busy.stdout, 'data');
  const waiting = await fillQueue(unixSocket);
  try {
    await assert.rejects(startGrpcServer([unary(() => HELLO)], { unixSocket }), /may be in use, connect EAGAIN/);
    assert.ok(existsSync(unixSocket));
  } finally {
    for (const socket of waiting) socket.destroy();
    busy.kill('SIGKILL');
  }
});

test('a server that stops leaves the socket of another one that has its name', async () => {
  const unixSocket = join(folder, 'handed-over.sock');
  const method = unary(() => HELLO);
  const first = await startGrpcServer([method], { unixSocket });
  rmSync(unixSocket);
  await using _second = await startGrpcServer([method], { unixSocket });
  await first[Symbol.asyncDispose]();
  using client = connectRaw(`unix:${unixSocket}`);
  assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('.')),
    [],
  );
});

test('the error of a socket that cannot be made names the configured path', async () => {
  const unixSocket = join(folder, 'missing', 'grpc.sock');
  await assert.rejects(startGrpcServer([unary(() => HELLO)], { unixSocket }), (error: Error) => {
    assert.match(error.message, /^Cannot listen for gRPC on .*missing.grpc\.sock: /);
    assert.doesNotMatch(error.message, /missing.\.[\w-]{6}/);
    return true;
  });
});

for (const name of ['s', 'grpc'])
  test(`a socket named ${name} may have the longest path`, { skip: process.platform !== 'linux' }, async () => {
    const deep = join(folder, 'd'.repeat(107 - folder.length - name.length - 2));
    mkdirSync(deep, { recursive: true });
    const unixSocket = join(deep, name);
    assert.equal(unixSocket.length, 107);
    await using _running = await startGrpcServer([unary(() => HELLO)], { unixSocket });
    using client = connectRaw(`unix:${unixSocket}`);
    assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'hello');
    assert.deepEqual(readdirSync(deep), [name]);
  });

test('a file that is not a socket is not removed', async () => {
  const file = join(folder, 'notes.txt');
  writeFileSync(file, 'keep me');
  await assert.rejects(startGrpcServer([unary(() => HELLO)], { unixSocket: file }), /not a socket has this name/);
  assert.equal(readFileSync(file, 'utf8'), 'keep me');
});

test('a unix socket gets the permissions that are set', async () => {
  const unixSocket = join(folder, 'shared.sock');
  await using _running = await startGrpcServer([unary(() => HELLO)], { unixSocket, unixSocketMode: 0o660 });
  assert.equal(statSync(unixSocket).mode & 0o777, 0o660);
});

test('a unix socket never has other permissions than those that are set', async () => {
  const unixSocket = join(folder, 'private.sock');
  const before = process.umask(0);
  after(() => process.umask(before));
  const watcher = spawn(process.execPath, ['-e', WATCH_MODES, unixSocket], { stdio: ['ignore', 'pipe', 'inherit'] });
  const seen = text(watcher.stdout);
  await once(watcher, 'spawn');
  for (let start = 0; start < 20; start++) {
    await using _running = await startGrpcServer([unary(() => HELLO)], { unixSocket, unixSocketMode: 0o600 });
    assert.equal(process.umask(), 0);
  }
  watcher.kill();
  assert.ok(['', '600'].includes(await seen));
});

/** Writes each mode of the file that it observes, once. */
const WATCH_MODES = `
  const { statSync } = require('node:fs');
  const seen = new Set();
  for (;;) {
    const file = statSync(process.argv[1], { throwIfNoEntry: false });
    const mode = file && (file.mode & 0o777).toString(8);
    if (mode === undefined || seen.has(mode)) continue;
    seen.add(mode);
    require('node:fs').writeSync(1, mode);
  }`;

/** Connects until the queue of the listener is full. */
async function fillQueue(path: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let isFull = false; !isFull; ) {
    const socket = connect(path);
    sockets.push(socket);
    isFull = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(false));
      socket.once('error', () => resolve(true));
    });
  }
  return sockets;
}

/** The socket file that a killed program leaves. */
function leaveStaleSocket(path: string): void {
  const listen = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', listen]);
  assert.ok(statSync(path).isSocket());
}
