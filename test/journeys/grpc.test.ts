import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startProgram } from '../support/programs/start-program.ts';

/** Debian's packages: python3-grpcio python3-protobuf protobuf-compiler. Another python3 in the path would not have them. */
const PYTHON = '/usr/bin/python3';
const PROTOC = '/usr/bin/protoc';

const hasPython = spawnSync(PYTHON, ['-c', 'import grpc, google.protobuf']).status === 0;
const hasProtoc = spawnSync(PROTOC, ['--version']).status === 0;
const missing =
  hasPython && hasProtoc ? '' : 'python3-grpcio, python3-protobuf and protobuf-compiler are not installed';

interface Report {
  services: Record<string, string[]>;
  files: string[];
  health: Record<string, string>;
  outputs: [number, string, number, number][];
  metadata: [string, string, number];
  refusal: [string, string];
  reports: Record<'stream' | 'batch', [accepted: number, refused: number, refusals: [number, string][]]>;
}

const folder = mkdtempSync(join(tmpdir(), 'trivet-python-'));
after(() => rmSync(folder, { recursive: true }));

test('a Python client finds the services by reflection, checks their health, predicts and reports', {
  skip: skipReason(),
}, async () => {
  assert.equal(missing, '');
  compileModules();
  await using program = await startProgram({ PARTS: 'prediction' });
  const output = execFileSync(PYTHON, ['test/journeys/grpc-client.py', program.grpcAddress, folder], {
    encoding: 'utf8',
    timeout: 240_000,
  });
  const report = JSON.parse(output) as Report;
  for (const version of ['v1', 'v1alpha']) {
    const names = report.services[version] ?? [];
    for (const name of [
      'prediction.v1.PredictionService',
      'hermes.prediction.v1.PredictionService',
      'observation.v1.ObservationService',
      'grpc.health.v1.Health',
    ])
      assert.ok(names.includes(name), `${version} does not list ${name}`);
  }
  assert.ok(report.files.includes('prediction/v1/prediction.proto'));
  assert.deepEqual(report.health, { '': 'SERVING', 'prediction.v1.PredictionService': 'SERVING' });
  assert.deepEqual(
    report.outputs.map(([inputId, serverIp]) => [inputId, serverIp]),
    [
      [-1, '10.0.0.0'],
      [0, '10.0.0.1'],
    ],
  );
  assert.ok(report.outputs.every(([, , ttftMs, tpotMs]) => ttftMs > 0 && tpotMs > 0));
  assert.deepEqual(report.metadata, ['qwen3-32b', 'prior@1', 1]);
  assert.deepEqual(report.reports, {
    stream: [2, 1, [[1, 'ttft_millis must be more than 0 and at most a day, got -3']]],
    batch: [1, 1, [[1, 'event must be one of dispatched, first_token, finished, observation']]],
  });
  assert.deepEqual(report.refusal, ['INVALID_ARGUMENT', 'Cannot predict: target_model must not be empty']);
});

/** Without the packages it is skipped on a developer's machine and fails where the gate runs. */
function skipReason(): string | false {
  return missing === '' || process.env.CI === 'true' ? false : missing;
}

/** Health and reflection as Python modules, in packages that do not hide the library's own name "grpc". */
function compileModules(): void {
  const protos = join(folder, 'protos');
  for (const [from, to] of [
    ['proto/grpc/health/v1/health.proto', 'grpc_health_v1'],
    ['proto/grpc/reflection/v1/reflection.proto', 'grpc_reflection'],
  ] as const) {
    mkdirSync(join(protos, to), { recursive: true });
    cpSync(from, join(protos, to, from.split('/').at(-1)!));
  }
  const files = ['grpc_health_v1/health.proto', 'grpc_reflection/reflection.proto'];
  execFileSync(PROTOC, [`--proto_path=${protos}`, `--python_out=${folder}`, ...files], { stdio: 'pipe' });
}
