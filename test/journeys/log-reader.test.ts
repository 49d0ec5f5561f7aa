/** A reader of the log that stops reading must not stop the service. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { createDataDir } from '../support/programs/start-program.ts';

/** A log line is some 300 bytes, and a pipe holds 64 KiB. */
const REQUESTS = 3_000;

test('requests are answered while no process reads the log, and no line is lost', async (t) => {
  const dataDir = createDataDir();
  const child = spawn(process.execPath, ['src/main.ts'], {
    env: { ...process.env, HTTP_PORT: '0', GRPC_PORT: '0', TRIVET_DATA_DIR: dataDir, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => {
    child.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });
  const url = await readUrl(child.stdout);
  child.stdout.resume();
  for (let sent = 0; sent < REQUESTS; sent += 50)
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const answer = await fetch(`${url}/api/v5/user`, { signal: AbortSignal.timeout(60_000) });
        assert.equal(answer.status, 401);
        await answer.arrayBuffer();
      }),
    );

  let lines = 0;
  const read = createInterface({ input: child.stderr });
  const allRead = new Promise<void>((resolve) => {
    read.on('line', (line) => {
      if (line.includes('/api/v5/user')) lines++;
      if (lines === REQUESTS) resolve();
    });
  });
  await allRead;
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  assert.equal(code, 0);
});

async function readUrl(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const url = /HTTP\s+(\S+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('The program ended before it was ready');
}
