/** The two servers, each on core 0. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrations } from '../../src/database/migrations/list.ts';
import { openStore } from '../../src/database/startup/open-store.ts';
import { packModel, publishModel } from '../../src/prediction/registry/publish-model.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { realWorld } from '../../src/world.ts';
import { NODE_FLAGS } from '../../test/support/programs/start-program.ts';
import { trainSyntheticModel } from '../predict/trained-predictor.ts';
import { createRows } from './rows.ts';

export interface FieldServers {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** The whole program, with a trained model. */
export async function startOurServer(): Promise<FieldServers> {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-bench-'));
  await publishSyntheticModel(dataDir);
  const port = await findFreePort();
  const environment = {
    PARTS: 'prediction',
    HTTP_PORT: '0',
    GRPC_PORT: '0',
    LLM_D_PORT: String(port),
    LLM_D_MODEL: 'qwen3-32b',
    TRIVET_DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    PREDICTION_LEARNING: 'false',
  };
  const program = new URL('../../src/main.ts', import.meta.url).pathname;
  const server = await startOnCore([process.execPath, ...NODE_FLAGS, program], { port, environment });
  await reportRows(server.url);
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export async function startFieldServer(python: string): Promise<FieldServers> {
  const port = await findFreePort();
  const program = new URL('field-server.py', import.meta.url).pathname;
  return await startOnCore([python, program, String(port)], { port, environment: { OMP_NUM_THREADS: '1' } });
}

async function publishSyntheticModel(dataDir: string): Promise<void> {
  await using store = await openStore({
    dataDir,
    databaseUrl: undefined,
    poolSize: 1,
    migrations,
    log: createLog('silent'),
    world: realWorld,
  });
  await publishModel(store, {
    name: 'qwen3-32b',
    packed: packModel(trainSyntheticModel(5000)),
    source: { observed: 5000 },
    promotion: 'promote',
    reason: 'benchmark',
    nowMs: Date.now(),
  });
}

/** Sends reports first: without server state, a prediction would be cheaper. */
async function reportRows(url: string): Promise<void> {
  const entries = createRows(400, 1).map((row, i) => ({
    ...row,
    actual_ttft_ms: i % 2 === 0 ? 200 : 0,
    actual_tpot_ms: i % 2 === 0 ? 0 : 15,
  }));
  const response = await fetch(`${url}/add_training_data_bulk`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ entries }),
  });
  if (response.status !== 202) throw new Error(`The rows were refused: ${await response.text()}`);
}

interface Start {
  readonly port: number;
  readonly environment: Readonly<Record<string, string>>;
}

async function startOnCore(command: readonly string[], { port, environment }: Start): Promise<FieldServers> {
  const child = spawn('taskset', ['-c', '0', ...command], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilReady(child, url);
  return { url, pid: child.pid!, stop: () => stop(child) };
}

async function waitUntilReady(child: ChildProcess, url: string): Promise<void> {
  while (child.exitCode === null) {
    const isReady = await fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isReady) return;
    await sleep(200);
  }
  throw new Error('The server ended before it was ready');
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('close', () => resolve());
    child.kill('SIGTERM');
  });
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
