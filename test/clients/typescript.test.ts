/** `clients/typescript` against the running program, and without one. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectGrpc } from '../../clients/typescript/grpc-client.ts';
import { connectHttp } from '../../clients/typescript/http-client.ts';
import { createRouter } from '../../clients/typescript/router.ts';
import { runTool } from '../support/basics/client-tools.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { startSilentProxy } from '../support/network/silent-proxy.ts';
import { METRICS, startLoadServer } from '../support/prediction/scraped-server.ts';
import { startWithDeadServer } from '../support/prediction/start-with-dead-server.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const POOL = ['10.0.0.1', '10.0.0.2'];

function runExample(...args: readonly string[]): Promise<string> {
  return runTool('clients/typescript', [process.execPath, 'example.ts', '--requests', '40', ...args]);
}

test('the TypeScript example routes and reports, over HTTP, gRPC and a unix socket', async () => {
  const dataDir = createDataDir();
  const socket = join(dataDir, 'prediction.sock');
  await using program = await startProgram({ PARTS: 'prediction', GRPC_UNIX_SOCKET: socket }, dataDir);
  for (const way of [
    ['--http', program.httpUrl],
    ['--grpc', program.grpcAddress],
    ['--grpc', `unix://${socket}`],
  ])
    assert.match(await runExample(...way), /reported: \{ accepted: 120, refused: 0, dropped: 0 \}\n/);
});

test('the TypeScript example over HTTP needs no package, and takes a URL that ends with a slash', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-typescript-'));
  cpSync('clients/typescript', folder, { recursive: true });
  await using program = await startProgram({ PARTS: 'prediction' });
  const command = [process.execPath, 'example.ts', '--requests', '4', '--http', `${program.httpUrl}/`] as const;
  assert.match(await runTool(folder, command), /prior@1': 4.*\n.*accepted: 12, refused: 0, dropped: 0/);
  rmSync(folder, { recursive: true });
});

test('the TypeScript example routes every request when no service is there', async () => {
  for (const way of [
    ['--http', 'http://127.0.0.1:1'],
    ['--grpc', '127.0.0.1:1'],
  ]) {
    const output = await runExample(...way);
    assert.match(
      output,
      /by model version: \{ fallback: 40 \}\nreported: \{ accepted: 0, refused: 0, dropped: \d+ \}\n/,
    );
  }
});

test('the TypeScript router sends requests away from a queue', async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  for (const client of [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)]) {
    const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 30_000 });
    router.setMetrics('10.0.0.1', { waiting: 40, kvCacheUsage: 0.9 });
    const choice = await router.choose(1000, POOL);
    assert.equal(choice.address, '10.0.0.2');
    assert.deepEqual([choice.modelVersion, choice.error], ['prior@1', undefined]);
    choice.firstToken(-5);
    choice.failed();
    assert.deepEqual(await router.close(), { accepted: 1, refused: 1, dropped: 0 });
  }
});

test('the TypeScript router has predictions beside a server that died, whose load the service cannot read', async () => {
  await using live = await startLoadServer((_request, response) => response.end(METRICS));
  await using program = await startWithDeadServer(live.url);
  for (const client of [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)]) {
    const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 30_000 });
    for (const candidates of [
      ['dead', 'live'],
      ['live', 'dead'],
    ]) {
      const choice = await router.choose(1000, candidates);
      assert.deepEqual([choice.address, choice.modelVersion, choice.error], ['live', 'prior@1', undefined]);
    }
    const last = await router.choose(1000, ['dead']);
    assert.equal(last.modelVersion, '');
    assert.match(String(last.error), /the service has no fresh load of their servers/);
    await router.close();
  }
});

test('the TypeScript client replaces a connection that fell silent', { timeout: 60_000 }, async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  await using proxy = await startSilentProxy(Number(program.grpcAddress.split(':')[1]));
  const router = createRouter({ client: connectGrpc(proxy.address), model: 'qwen3-32b', deadlineMs: 1000 });
  const askForVersion = async () => {
    const choice = await router.choose(1000, POOL);
    choice.failed();
    return choice.modelVersion;
  };
  await waitUntil(async () => (await askForVersion()) === 'prior@1');
  proxy.fallSilent();
  assert.equal(await askForVersion(), '');
  await waitUntil(async () => (await askForVersion()) === 'prior@1');
  assert.equal((await router.close()).dropped, 0);
});

test('the TypeScript router falls back to the fewest requests when nothing answers', async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const client = connectHttp(`http://127.0.0.1:${port}`);
  const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 20 });
  const chosen = [await router.choose(1000, POOL), await router.choose(1000, POOL)];
  assert.deepEqual(
    chosen.map(({ address, modelVersion }) => [address, modelVersion]),
    POOL.map((address) => [address, '']),
  );
  assert.equal((chosen[0]!.error as Error).name, 'TimeoutError');
  await assert.rejects(router.choose(1000, []), /there are no candidates/);
  for (const socket of sockets) socket.destroy();
  silent.close();
});
