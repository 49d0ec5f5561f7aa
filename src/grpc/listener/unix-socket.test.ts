import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

/** Writes each mode of the file that it sees, once. */
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

/** What a program that is killed leaves. */
function leaveStaleSocket(path: string): void {
  const listen = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', listen]);
  assert.ok(statSync(path).isSocket());
}
