/** What becomes of the reports of `clients/typescript` while the service is away, refuses them, or is there. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectGrpc } from '../../clients/typescript/grpc-client.ts';
import { connectHttp } from '../../clients/typescript/http-client.ts';
import type { Client, ReportOptions } from '../../clients/typescript/messages.ts';
import { createRouter } from '../../clients/typescript/router.ts';
import { findFreePorts } from '../support/basics/free-port.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

/** Routes 100 requests in about three seconds, each with three events. */
async function routeWithoutService(client: Client) {
  const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 30 });
  for (let request = 0; request < 100; request++) {
    const choice = await router.choose(1000, ['10.0.0.1', '10.0.0.2']);
    choice.firstToken(120);
    choice.finished(2000, 181);
    // Events come while attempts to connect fail: the time between them is what is tested.
    await sleep(30);
  }
  return router;
}

async function connectToFreePorts() {
  const [httpPort = 0, grpcPort = 0] = await findFreePorts(2);
  const clients = [connectHttp(`http://127.0.0.1:${httpPort}`), connectGrpc(`127.0.0.1:${grpcPort}`)];
  const settings = { PARTS: 'prediction', HTTP_PORT: String(httpPort), GRPC_PORT: String(grpcPort) };
  return { clients, settings };
}

test('the TypeScript client keeps every report until the service is there', async () => {
  const { clients, settings } = await connectToFreePorts();
  const routers = await Promise.all(clients.map(routeWithoutService));
  await using _program = await startProgram(settings);
  for (const router of routers) assert.deepEqual(await router.close(), { accepted: 300, refused: 0, dropped: 0 });
});

test('the TypeScript client counts every report that no service took as dropped', async () => {
  const { clients } = await connectToFreePorts();
  const routers = await Promise.all(clients.map(routeWithoutService));
  for (const router of routers) assert.deepEqual(await router.close(), { accepted: 0, refused: 0, dropped: 300 });
});

test('the TypeScript client says when an event happened, which may be long before the service has it', async () => {
  const { clients, settings } = await connectToFreePorts();
  const models = ['over-http', 'over-grpc'];
  const asked: { readonly model: string; readonly beforeMs: number; readonly afterMs: number }[] = [];
  for (const [index, model] of models.entries()) {
    const router = createRouter({ client: clients[index]!, model, deadlineMs: 30 });
    const beforeMs = Date.now();
    const choice = await router.choose(1000, ['10.0.0.1']);
    asked.push({ model, beforeMs, afterMs: Date.now() });
    choice.firstToken(120);
    choice.finished(2000, 181);
  }
  await using program = await startProgram(settings);
  for (const client of clients) assert.equal((await client.close()).accepted, 3);
  using store = new DatabaseSync(join(program.dataDir, 'trivet.db'), { readOnly: true });
  const sample = store.prepare('SELECT at_ms FROM samples WHERE target_model = ?');
  for (const { model, beforeMs, afterMs } of asked) {
    const atMs = Number(sample.get(model)?.at_ms);
    assert.ok(atMs >= beforeMs && atMs <= afterMs, `${model}: ${atMs - beforeMs} ms after the choice began`);
  }
});

test('the TypeScript client sends a batch that is too large for the service in parts', async () => {
  const limits = { HTTP_MAX_BODY_BYTES: '20000', GRPC_MAX_MESSAGE_BYTES: '20000' };
  await using program = await startProgram({ PARTS: 'prediction', ...limits });
  for (const client of [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)]) {
    for (let request = 0; request < 200; request++) reportRequest(client, randomUUID());
    assert.deepEqual(await client.close(), { accepted: 600, refused: 0, dropped: 0 });
  }
});

function reportRequest(client: Client, requestId: string): void {
  const at = new Date().toISOString();
  const input = { inputId: 0, serverIp: '10.0.0.1', inputTokenLength: 1000 };
  client.report({ dispatched: { requestId, targetModel: 'qwen3-32b', input, at } });
  client.report({ firstToken: { requestId, ttftMillis: 120, at } });
  client.report({ finished: { requestId, tpotMillis: 11, outputTokens: 181, at } });
}

test('the TypeScript client tells while it runs that its token may not report', async () => {
  const dataDir = createDataDir();
  const env = { TRIVET_DATA_DIR: dataDir };
  await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], { env });
  const made = await runTrivet(
    ['token', 'create', '--user', 'ada', '--name', 'gateway', '--scope', 'predict', '--json'],
    { env },
  );
  const { token } = JSON.parse(made.stdout) as { token: string };
  await using program = await startProgram({ PREDICTION_AUTH: 'on' }, dataDir);
  for (const connect of [
    (options: ReportOptions) => connectHttp(program.httpUrl, { token, ...options }),
    (options: ReportOptions) => connectGrpc(program.grpcAddress, { token, ...options }),
  ]) {
    const errors: unknown[] = [];
    const client = connect({ onError: (error) => void errors.push(error) });
    const router = createRouter({ client, model: 'qwen3-32b', deadlineMs: 30_000 });
    const choice = await router.choose(1000, ['10.0.0.1']);
    assert.equal(choice.modelVersion, 'prior@1');
    await waitUntil(() => errors.length > 0);
    const { error, ...counts } = router.stats();
    assert.match(String(error), /scope|permission/i);
    assert.equal(errors.at(-1), error);
    assert.deepEqual(counts, { accepted: 0, refused: 0, dropped: 0, waiting: 1 });
    assert.deepEqual(await router.close(), { accepted: 0, refused: 0, dropped: 1 });
  }
});

test('the TypeScript client refuses half a surrogate pair, which the service cannot read', async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  for (const client of [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)]) {
    const router = createRouter({ client, model: 'qwen3-32b\ud83d', deadlineMs: 30_000 });
    (await router.choose(1000, ['10.0.0.1'])).firstToken(120);
    assert.match(String(router.stats().error), /surrogate/);
    assert.deepEqual(await router.close(), { accepted: 1, refused: 1, dropped: 0 });
  }
});

test('the TypeScript client counts what a service took before it was killed', async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  const clients = [connectHttp(program.httpUrl), connectGrpc(program.grpcAddress)];
  const routers = clients.map((client) => createRouter({ client, model: 'qwen3-32b', deadlineMs: 30_000 }));
  for (const router of routers) {
    (await router.choose(1000, ['10.0.0.1'])).firstToken(120);
    await waitUntil(() => router.stats().accepted === 2);
  }
  await program.kill();
  for (const router of routers) {
    (await router.choose(1000, ['10.0.0.1'])).failed();
    await waitUntil(() => router.stats().error);
    assert.deepEqual(await router.close(), { accepted: 2, refused: 0, dropped: 1 });
  }
});
