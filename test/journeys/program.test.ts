import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runTrivet } from '../support/run-trivet.ts';
import { startProgram } from '../support/start-program.ts';

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
