/** Each operation needs its scope, by a table; with the real program, on both engines. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { status as grpcStatus } from '@grpc/grpc-js';
import { connectRaw } from '../support/grpc/grpc-client.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, type StorePlace } from '../support/store/engines.ts';

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** The refusal names this scope. */
  readonly needs: string;
  /** Other scopes that allow it. */
  readonly also?: readonly string[];
}

/** Every scope that is not narrow: these could always predict and report. */
const WIDE = ['all_user', 'all_projects', 'all_hook', 'admin'];
const NARROW = [
  'predict',
  'observe',
  'events:write',
  'models:read',
  'models:write',
  'admin:people',
  'admin:audit',
  'admin:hooks',
  'admin:applications',
];

const EVENT = { kind: 'push', ref: 'refs/heads/main', before: '0'.repeat(40), after: '1'.repeat(40), commits: [] };

const operations: readonly Operation[] = [
  { method: 'POST', path: '/prediction.v1.PredictionService/Predict', body: {}, needs: 'predict', also: WIDE },
  { method: 'POST', path: '/hermes.prediction.v1.PredictionService/Predict', body: {}, needs: 'predict', also: WIDE },
  { method: 'GET', path: '/prediction/capacity', needs: 'predict', also: WIDE },
  { method: 'POST', path: '/llm-d/m/predict', body: {}, needs: 'predict', also: WIDE },
  { method: 'POST', path: '/llm-d/m/predict/bulk/strict', body: {}, needs: 'predict', also: WIDE },
  { method: 'GET', path: '/llm-d/m/status', needs: 'predict', also: WIDE },
  { method: 'POST', path: '/llm-d/m/add_training_data_bulk', body: {}, needs: 'observe', also: WIDE },
  { method: 'POST', path: '/observation.v1.ObservationService/ReportBatch', body: {}, needs: 'observe', also: WIDE },
  { method: 'POST', path: '/v1/traces', body: {}, needs: 'observe', also: WIDE },
  { method: 'POST', path: '/api/v5/repos/root/doors/events', body: EVENT, needs: 'events:write', also: ['all_hook'] },
  { method: 'GET', path: '/api/v5/repos/root/doors/hooks', needs: 'all_hook' },
  { method: 'GET', path: '/api/v5/repos/root/doors', needs: 'all_projects' },
  { method: 'GET', path: '/api/v5/user', needs: 'all_user' },
];

for (const engine of engines)
  test(`each scope allows its operations and no others (${engine})`, { skip: findReasonToSkip(engine) }, async () => {
    const place = await createStorePlace(engine);
    try {
      await checkMatrix(place);
    } finally {
      rmSync(place.dataDir, { recursive: true, force: true });
    }
  });

async function checkMatrix({ dataDir, databaseUrl }: StorePlace): Promise<void> {
  const env = {
    TRIVET_DATA_DIR: dataDir,
    PREDICTION_AUTH: 'on',
    PREDICTION_TRACES_KV_CAPACITY_TOKENS: '100000',
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  };
  await using program = await startProgram(env, dataDir);
  const trivet = async (...argv: string[]) => {
    const run = await runTrivet(argv, { env });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  await trivet('user', 'create', '--login', 'root', '--name', 'Root', '--admin');
  await trivet('repo', 'create', 'root/doors');
  for (const scope of [...NARROW, ...WIDE]) {
    const token = await trivet('token', 'create', '--user', 'root', '--name', scope, '--scope', scope);
    for (const operation of operations) await checkCell(program.httpUrl, { scope, token, operation });
    await checkGrpc(program.grpcAddress, token, scope);
  }
}

interface Cell {
  readonly scope: string;
  readonly token: string;
  readonly operation: Operation;
}

async function checkCell(url: string, { scope, token, operation }: Cell): Promise<void> {
  const { method, path, body, needs, also = [] } = operation;
  const cell = `${scope} on ${method} ${path}`;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (scope === needs || also.includes(scope)) {
    assert.ok(response.status !== 401 && response.status !== 403, `${cell}: ${response.status} ${text}`);
    return;
  }
  assert.equal(response.status, 403, `${cell}: ${text}`);
  const challenge = `Bearer realm="trivet", error="insufficient_scope", scope="${needs}"`;
  assert.equal(response.headers.get('www-authenticate'), challenge, cell);
  assert.match(text, new RegExp(`needs the scope ${needs}`), cell);
}

/** The same over gRPC, where the status and its text say it. */
async function checkGrpc(address: string, token: string, scope: string): Promise<void> {
  using client = connectRaw(address);
  const metadata = { authorization: `Bearer ${token}` };
  for (const [path, needs] of [
    ['/prediction.v1.PredictionService/Predict', 'predict'],
    ['/observation.v1.ObservationService/ReportBatch', 'observe'],
  ] as const) {
    const call = client.unary(path, new Uint8Array(), { metadata });
    const code = await call.then(
      () => grpcStatus.OK,
      (error: { code: number }) => error.code,
    );
    if (scope === needs || WIDE.includes(scope))
      assert.ok(code === grpcStatus.OK || code === grpcStatus.INVALID_ARGUMENT, `${scope} on ${path}: ${code}`);
    else
      await assert.rejects(call, {
        code: grpcStatus.PERMISSION_DENIED,
        details: `Forbidden: the token needs the scope ${needs}`,
      });
  }
}

test('a token for some repositories reaches them and nothing else', async () => {
  await using program = await startProgram({ PREDICTION_AUTH: 'on' });
  const env = { TRIVET_DATA_DIR: program.dataDir };
  const trivet = async (...argv: string[]) => {
    const run = await runTrivet(argv, { env });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  await trivet('user', 'create', '--login', 'root', '--name', 'Root', '--admin');
  for (const name of ['Doors', 'windows']) await trivet('repo', 'create', `root/${name}`);
  const create = ['token', 'create', '--user', 'root', '--name', 't', '--scope', 'all_hook', 'all_projects'];
  const token = await trivet(...create, '--repository', 'Root/doors');
  const ask = async (path: string, method = 'GET') => {
    const init = { method, headers: { authorization: `Bearer ${token}` } };
    const response = await fetch(`${program.httpUrl}${path}`, init);
    return { status: response.status, text: await response.text() };
  };
  for (const path of ['/api/v5/repos/root/Doors/hooks', '/api/v5/repos/root/doors', '/api/v5/repos/ROOT/doors'])
    assert.equal((await ask(path)).status, 200, path);
  const outside: [path: string, method: string][] = [
    ['/api/v5/repos/root/windows/hooks', 'GET'],
    ['/api/v5/repos/root/windows', 'GET'],
    ['/api/v5/repos/root/unknown', 'GET'],
    ['/api/v5/repos/root/windows', 'DELETE'],
    ['/api/v5/repos/root/windows/bridges', 'GET'],
    ['/api/v5/repos/root/windows/events', 'POST'],
    ['/api/v5/user/repos', 'GET'],
    ['/api/v5/user/repos', 'POST'],
    ['/api/v5/orgs/acme/repos', 'POST'],
  ];
  for (const [path, method] of outside) {
    const { status, text } = await ask(path, method);
    assert.equal(status, 403, `${method} ${path} ${text}`);
    assert.match(text, /the token is limited to root\/doors/);
  }
  for (const path of ['/api/v5/user', '/prediction.v1.PredictionService/Predict'])
    assert.equal((await ask(path, path.endsWith('Predict') ? 'POST' : 'GET')).status, 403, path);
  const [listed] = (await trivet('token', 'list', 'root', '--json')).split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(listed.repositories, ['root/doors']);

  const wide = await runTrivet([...create.slice(0, -2), 'all_user', '--repository', 'root/doors'], { env });
  assert.equal(wide.code, 2);
  assert.match(wide.stderr, /scopes must be of all_projects, .* when it is limited to repositories, got "all_user"/);
  const misspelt = await runTrivet([...create, '--repository', 'doors'], { env });
  assert.match(misspelt.stderr, /repositories must be OWNER\/NAME each, got "doors"/);
});

test('a person who administers no longer loses what is for administrators', async () => {
  await using program = await startProgram({ PREDICTION_AUTH: 'on' });
  const env = { TRIVET_DATA_DIR: program.dataDir };
  const trivet = async (...argv: string[]) => (await runTrivet(argv, { env })).stdout.trim();
  await trivet('user', 'create', '--login', 'root', '--name', 'Root', '--admin');
  // The last administrator stays one.
  await trivet('user', 'create', '--login', 'other', '--name', 'Other', '--admin');
  const refused = await runTrivet(['user', 'create', '--login', 'ada', '--name', 'Ada'], { env });
  assert.equal(refused.code, 0);
  const narrow = ['token', 'create', '--name', 't', '--scope', 'admin:audit', '--user'];
  const forAda = await runTrivet([...narrow, 'ada'], { env });
  assert.match(forAda.stderr, /must not have admin:audit: the person is not an administrator/);
  const token = await trivet('token', 'create', '--name', 't', '--scope', 'admin', '--user', 'root');
  const predict = async () => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: '{}' };
    return (await fetch(`${program.httpUrl}/prediction.v1.PredictionService/Predict`, init)).status;
  };
  assert.equal(await predict(), 400);
  await trivet('user', 'admin', 'root', '--revoke');
  assert.equal(await predict(), 403);
});
