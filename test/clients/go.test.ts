/** `clients/go` with Debian's Go and grpc-go, without a network, against the running program. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { runTool, skipWithout } from '../support/basics/client-tools.ts';
import { findFreePort } from '../support/basics/free-port.ts';
import { METRICS, startLoadServer } from '../support/prediction/scraped-server.ts';
import { startWithDeadServer } from '../support/prediction/start-with-dead-server.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const skip = skipWithout(
  'golang-go golang-google-grpc-dev golang-github-golang-protobuf-1-5-dev protoc-gen-go protoc-gen-go-grpc protobuf-compiler',
  ['go', 'version'],
  ['protoc-gen-go', '--version'],
  ['protoc-gen-go-grpc', '--version'],
  ['ls', '/usr/share/gocode/src/google.golang.org/grpc'],
);
/** A test binary that runs by itself has no limit: without this one, a test that hangs would never fail. Each test is named. */
const OPTIONS = ['-test.timeout', '2m', '-test.v'];
/** A GOPATH of its own beside that of Debian: what the packages there are built with, without a download. */
const folder = mkdtempSync(join(tmpdir(), 'trivet-go-'));
const sources = join(folder, 'src', 'trivet');
after(() => rmSync(folder, { recursive: true, force: true }));

function run(
  command: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  return runTool(sources, command, {
    GO111MODULE: 'off',
    GOPATH: `${folder}:/usr/share/gocode`,
    GOFLAGS: '',
    ...environment,
  });
}

/** Runs a test of the router; it must have run. */
async function runRouterTest(name: string, environment: Readonly<Record<string, string>>): Promise<void> {
  checkPassed(await run(['./router.test', ...OPTIONS, '-test.run', `^${name}$`], environment), name);
}

/** A test binary also ends with 0 when no test has the name, and when it was skipped. */
function checkPassed(output: string, name: string): void {
  assert.ok(output.includes(`--- PASS: ${name} (`), output);
}

before(async () => {
  if (skip !== false) return;
  // The folders lie as in a clone, where proto/ is two folders above.
  cpSync('clients/go', sources, { recursive: true });
  cpSync('proto', join(folder, 'proto'), { recursive: true });
  await run(['./generate.sh']);
  await run(['go', 'vet', './router', './example']);
  await run(['go', 'test', '-c', '-o', 'router.test', './router']);
  await run(['go', 'build', '-o', 'example.out', './example']);
});

test('the Go code is formatted as gofmt formats it', { skip }, async () => {
  assert.equal(await run(['gofmt', '-l', 'router', 'example']), '');
});

test('the Go router predicts, reports and falls back, over TCP and a unix socket', { skip }, async () => {
  const dataDir = createDataDir();
  const socket = join(dataDir, 'prediction.sock');
  await using program = await startProgram({ PARTS: 'prediction', GRPC_UNIX_SOCKET: socket }, dataDir);
  for (const address of [program.grpcAddress, `unix://${socket}`]) {
    const output = await run(['./router.test', ...OPTIONS], { TRIVET_GRPC_ADDRESS: address });
    checkPassed(output, 'TestTheServicePredictsAndTakesEveryReport');
  }
  const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
  assert.match(metrics, /trivet_prediction_observed_total\{model="qwen3-32b",target="ttft"\} 120\n/);
  assert.match(metrics, /trivet_prediction_observed_total\{model="qwen3-32b",target="tpot"\} 120\n/);

  const output = await run(['./example.out', '-address', program.grpcAddress, '-requests', '40']);
  assert.match(output, /reported: \{Accepted:120 Refused:0 Dropped:0 /);
});

test('the Go router has predictions beside a server that died, whose load the service cannot read', {
  skip,
}, async () => {
  await using live = await startLoadServer((_request, response) => response.end(METRICS));
  await using program = await startWithDeadServer(live.url);
  await runRouterTest('TestADeadServerLeavesTheOthersTheirPredictions', {
    TRIVET_GRPC_ADDRESS: program.grpcAddress,
    TRIVET_LIVE_SERVER: 'live',
  });
});

/** Starts a test of the router; resolves once it has written the line. */
async function startTest(name: string, line: string, environment: Readonly<Record<string, string>>) {
  const child = spawn(join(sources, 'router.test'), [...OPTIONS, '-test.run', `^${name}$`], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  after(() => void child.kill('SIGKILL'));
  const closed = once(child, 'close');
  let output = '';
  const written = Promise.withResolvers<void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.includes(`${line}\n`)) written.resolve();
  });
  await Promise.race([written.promise, closed]);
  return {
    /** Waits for its end. */
    checkPassed: async () => {
      assert.deepEqual(await closed, [0, null], output);
      checkPassed(output, name);
    },
  };
}

test('the Go router keeps its reports until the service is there', { skip }, async () => {
  const port = String(await findFreePort());
  const routing = await startTest('TestReportsOfBeforeTheServiceAreKept', 'routed', {
    TRIVET_LATE_ADDRESS: `127.0.0.1:${port}`,
  });
  await using _program = await startProgram({ PARTS: 'prediction', GRPC_PORT: port });
  await routing.checkPassed();
});

test('the Go router sends a batch that is too large for the service in parts', { skip }, async () => {
  await using program = await startProgram({ PARTS: 'prediction', GRPC_MAX_MESSAGE_BYTES: '20000' });
  await runRouterTest('TestABatchThatIsTooLargeIsSentInParts', { TRIVET_SMALL_ADDRESS: program.grpcAddress });
});

test('the Go router counts what a service took before it was killed', { skip }, async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  const routing = await startTest('TestCountsOutliveTheService', 'taken', {
    TRIVET_ENDING_ADDRESS: program.grpcAddress,
  });
  await program.kill();
  await routing.checkPassed();
});

test('the Go router says while it runs why the service takes no reports', { skip }, async () => {
  await using program = await startProgram({ PARTS: 'prediction', PREDICTION_AUTH: 'on' });
  await runRouterTest('TestOnErrorSaysWhyTheServiceTakesNoReports', { TRIVET_CLOSED_ADDRESS: program.grpcAddress });
});

test('the Go example routes every request when no service is there', { skip }, async () => {
  await assert.rejects(
    () => run(['./example.out', '-address', '127.0.0.1:1', '-requests', '40']),
    (error: { stdout: string }) => /by model version: map\[fallback:40\]\nreported: \{Accepted:0 /.test(error.stdout),
  );
});
