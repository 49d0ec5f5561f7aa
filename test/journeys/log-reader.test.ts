/** A log that cannot be written, or that is not read, must not stop the service, nor keep it from stopping. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { createDataDir } from '../support/programs/start-program.ts';

/** A log line is some 300 bytes, and a pipe holds 64 KiB. */
const REQUESTS = 3_000;

function start(t: TestContext, log: 'pipe' | number): ChildProcess {
  const dataDir = createDataDir();
  const child = spawn(process.execPath, ['src/main.ts'], {
    env: { ...process.env, HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', log],
  });
  t.after(() => {
    child.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });
  return child;
}

async function request(output: NodeJS.ReadableStream): Promise<void> {
  const url = await readUrl(output);
  output.resume();
  for (let sent = 0; sent < REQUESTS; sent += 50)
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const answer = await fetch(`${url}/api/v5/user`, { signal: AbortSignal.timeout(60_000) });
        assert.equal(answer.status, 401);
        await answer.arrayBuffer();
      }),
    );
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0);
}

test('a service whose log no process reads stops all the same', async (t) => {
  const child = start(t, 'pipe');
  await request(child.stdout!);
  await stop(child);
});

test('a service goes on when the disk of its log is full, and stops', async (t) => {
  const full = openSync('/dev/full', 'w');
  t.after(() => closeSync(full));
  const child = start(t, full);
  await request(child.stdout!);
  await stop(child);
});

test('a service starts when no process reads its output', async (t) => {
  const child = start(t, 'pipe');
  child.stdout!.destroy();
  for await (const line of createInterface({ input: child.stderr! })) if (line.includes('started')) break;
  child.stderr!.resume();
  await stop(child);
});

test('requests are answered while no process reads the log, and no line is lost', async (t) => {
  const child = start(t, 'pipe');
  await request(child.stdout!);
  let lines = 0;
  const read = createInterface({ input: child.stderr! });
  const allRead = new Promise<void>((resolve) => {
    read.on('line', (line) => {
      if (line.includes('/api/v5/user')) lines++;
      if (lines === REQUESTS) resolve();
    });
  });
  await allRead;
  await stop(child);
});

async function readUrl(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const url = /HTTP\s+(\S+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('The program ended before it was ready');
}
