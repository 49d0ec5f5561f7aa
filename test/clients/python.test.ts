/** `clients/python` with Debian's Python: its own tests and its example, over HTTP and gRPC, against the running program. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readTool, runTool, skipWithout } from '../support/basics/client-tools.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

const PYTHON = '/usr/bin/python3';
const skip = skipWithout(
  'python3-grpcio python3-protobuf protobuf-compiler mypy',
  [PYTHON, '-c', 'import grpc, google.protobuf'],
  ['/usr/bin/protoc', '--version'],
  ['/usr/bin/mypy', '--version'],
);
const folder = mkdtempSync(join(tmpdir(), 'trivet-python-client-'));
const sources = join(folder, 'clients', 'python');
after(() => rmSync(folder, { recursive: true, force: true }));

const ENVIRONMENT = { PYTHONDONTWRITEBYTECODE: '1' };

function run(command: readonly [string, ...string[]]): Promise<string> {
  return runTool(sources, command, ENVIRONMENT);
}

/** Runs tests of the package; returns why some were skipped. */
async function runUnittest(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const command: [string, ...string[]] = [PYTHON, '-m', 'unittest', ...argv, '-v'];
  const { stderr } = await readTool(sources, command, { ...ENVIRONMENT, ...environment });
  assert.match(stderr, /^Ran [1-9]\d* tests? in /m);
  return [...stderr.matchAll(/ \.\.\. skipped '(.*)'$/gm)].map(([, reason = '']) => reason);
}

before(async () => {
  if (skip !== false) return;
  // The folders lie as in a clone, where proto/ is two folders above.
  cpSync('clients/python', sources, { recursive: true });
  cpSync('proto', join(folder, 'proto'), { recursive: true });
  await run(['./generate.sh']);
});

test('the Python package has the types that it declares, for Python 3.9', { skip }, async () => {
  const options = ['--strict', '--ignore-missing-imports', '--python-version', '3.9', '--disable-error-code', 'import'];
  await run(['/usr/bin/mypy', ...options, '--cache-dir', join(folder, 'mypy'), 'trivet']);
});

test('the Python package passes its own tests against the service', { skip }, async () => {
  await using program = await startProgram({ PARTS: 'prediction' });
  const skipped = await runUnittest(['discover', '-t', '.', '-s', 'tests'], {
    TRIVET_URL: program.httpUrl,
    TRIVET_GRPC: program.grpcAddress,
  });
  // The next tests run these.
  const left = ['TRIVET_PREDICT_TOKEN', 'TRIVET_SMALL_GRPC', 'TRIVET_SMALL_PROXY', 'TRIVET_SMALL_URL'];
  assert.deepEqual(new Set(skipped.map((reason) => reason.split(' ')[0])), new Set(left));
});

test('the Python package sends a batch that is too large for the service in parts', { skip }, async () => {
  const limits = { HTTP_MAX_BODY_BYTES: '20000', GRPC_MAX_MESSAGE_BYTES: '20000' };
  await using program = await startProgram({ PARTS: 'prediction', ...limits });
  const skipped = await runUnittest(['tests.test_reporter.SmallServiceTest', 'tests.test_grpc.SmallServiceTest'], {
    TRIVET_SMALL_URL: program.httpUrl,
    TRIVET_SMALL_GRPC: program.grpcAddress,
  });
  assert.deepEqual(skipped, []);
});

test('the Python package knows that a message is too large for a proxy over HTTP/2', { skip }, async (t) => {
  const proxy = createServer().on('stream', (stream) => stream.respond({ ':status': 413 }, { endStream: true }));
  t.after(() => proxy.close());
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as AddressInfo;
  const TRIVET_SMALL_PROXY = `127.0.0.1:${port}`;
  const skipped = await runUnittest(['tests.test_grpc.ClientTest', '-k', 'proxy'], { TRIVET_SMALL_PROXY });
  assert.deepEqual(skipped, []);
});

test('the Python package says that a token must not report', { skip }, async () => {
  const dataDir = createDataDir();
  const env = { TRIVET_DATA_DIR: dataDir, PREDICTION_AUTH: 'on' };
  await using program = await startProgram(env, dataDir);
  const trivet = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runTrivet(argv, { env });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await trivet('user', 'create', '--login', 'root', '--name', 'Root', '--admin');
  const token = await trivet('token', 'create', '--user', 'root', '--name', 'gateway', '--scope', 'predict');
  const skipped = await runUnittest(['tests.test_reporter.RightsTest'], {
    TRIVET_URL: program.httpUrl,
    TRIVET_PREDICT_TOKEN: token,
  });
  assert.deepEqual(skipped, []);
});

test('the Python example routes, over HTTP, gRPC and a unix socket', { skip }, async () => {
  const dataDir = createDataDir();
  const socket = join(dataDir, 'prediction.sock');
  await using program = await startProgram({ PARTS: 'prediction', GRPC_UNIX_SOCKET: socket }, dataDir);
  for (const way of [
    ['--http', program.httpUrl],
    ['--grpc', program.grpcAddress],
    ['--grpc', `unix://${socket}`],
  ])
    assert.match(
      await run([PYTHON, 'examples/gateway.py', ...way, '--requests', '40']),
      /reported: accepted 120, refused 0, dropped 0\n/,
    );
});

test('the Python example routes every request when no service is there', { skip }, async () => {
  const output = await run([PYTHON, 'examples/gateway.py', '--http', 'http://127.0.0.1:1', '--requests', '40']);
  assert.match(output, /by model version: \{'fallback': 40\}\nreported: accepted 0, refused 0, dropped 120\n/);
});
