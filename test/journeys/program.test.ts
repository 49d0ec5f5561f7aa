import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

test('the program starts, answers its probes, and stops on SIGTERM with exit code 0', async () => {
  await using program = await startProgram();
  for (const [path, pattern] of [
    ['/healthz', /ok/],
    ['/readyz', /ready/],
    ['/metrics', /trivet_http_request_duration_seconds/],
  ] as const) {
    const response = await fetch(program.httpUrl + path);
    assert.equal(response.status, 200);
    assert.match(await response.text(), pattern);
  }
  assert.equal(await program.stop(), 0);
  for (const line of program.log().trim().split('\n')) assert.ok(JSON.parse(line));
});

test('a second start on the same data folder is refused, and names the folder', async () => {
  await using program = await startProgram();
  await assert.rejects(startProgram({}, program.dataDir), (error: Error) => error.message.includes(program.dataDir));
  assert.equal((await fetch(`${program.httpUrl}/readyz`)).status, 200);
});

test('a start after kill -9 just works', async () => {
  const first = await startProgram();
  await first.kill();
  await using second = await startProgram({}, first.dataDir);
  assert.equal((await fetch(`${second.httpUrl}/readyz`)).status, 200);
});

test('a wish for TLS without its key is refused before anything listens', async () => {
  const run = await runTrivet(['serve'], {
    env: { GRPC_TLS_CERT_FILE: 'cert.pem', HTTP_PORT: '0', TRIVET_DATA_DIR: createDataDir() },
  });
  assert.equal(run.code, 2);
  assert.match(run.stderr, /GRPC_TLS_CERT_FILE and GRPC_TLS_KEY_FILE must be given together/);
});

test('trivet suggests the command that was meant, with exit code 2', async () => {
  const run = await runTrivet(['serv']);
  assert.equal(run.code, 2);
  assert.match(run.stderr, /Did you mean serve\?/);
});

test('trivet serve lists every mistake of the configuration and starts nothing, with exit code 2', async () => {
  const run = await runTrivet(['serve'], { env: { HTTP_PORT: 'x', LOG_LEVEL: 'loud' } });
  assert.equal(run.code, 2);
  assert.match(run.stderr, /HTTP_PORT/);
  assert.match(run.stderr, /LOG_LEVEL/);
});

test('trivet --help names the commands', async () => {
  const run = await runTrivet(['--help']);
  assert.equal(run.code, 0);
  assert.match(run.stdout, /serve/);
});
