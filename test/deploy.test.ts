/** Each variable that the manifests set exists: a misspelt one would be ignored in silence. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { settings } from '../src/config/settings.ts';
import { waitUntil } from './support/basics/wait-until.ts';
import { findMistakes, type Resource } from './support/deploy/kubernetes-schemas.ts';
import { startProgram } from './support/programs/start-program.ts';
import { listShellBlocks } from './support/rules/shell-blocks.ts';
import { findReasonToSkip } from './support/store/engines.ts';
import { createTestDatabase, startPostgresCluster } from './support/store/postgres-cluster.ts';

/** Variables of the programs beside us. */
const OTHERS = new Set(['PREDICTION_SERVER_URL', 'TRAINING_SERVER_URL']);
const known = new Set(Object.values(settings).flatMap((section) => Object.values(section).map(({ env }) => env)));

function findUnknown(manifest: string): string[] {
  const names = [...manifest.matchAll(/name: ([A-Z][A-Z0-9_]+)\b/g)].map(([, name = '']) => name);
  return names.filter((name) => !known.has(name) && !OTHERS.has(name));
}

const manifests = globSync('deploy/kubernetes/**/*.yaml');

/** Kinds of other projects, and files for other programs, whose schema no package has. */
const WITHOUT_SCHEMA = ['LLMInferenceServiceConfig', 'ScaledObject', 'Kustomization', undefined];

for (const file of manifests)
  test(`the resources in ${file} fit the schemas of Kubernetes`, () => {
    for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
      const resource = document.toJS({}) as Resource;
      const mistakes = WITHOUT_SCHEMA.includes(resource.kind) ? [] : findMistakes(resource);
      assert.deepEqual(mistakes, [], `${resource.kind}`);
    }
  });

for (const file of manifests)
  test(`the variables in ${file} are settings`, () => assert.deepEqual(findUnknown(readFileSync(file, 'utf8')), []));

test('KEDA takes absent series for unknown, and never scales down for them', () => {
  const { spec } = parse(readFileSync('deploy/kubernetes/autoscaling-keda.yaml', 'utf8')) as {
    readonly spec: {
      readonly minReplicaCount: number;
      readonly fallback?: { readonly replicas: number; readonly behavior: string };
      readonly triggers: readonly { readonly metadata: { readonly ignoreNullValues?: string } }[];
    };
  };
  assert.deepEqual(
    spec.triggers.map(({ metadata }) => metadata.ignoreNullValues),
    ['false'],
  );
  assert.equal(spec.fallback?.behavior, 'currentReplicasIfHigher');
  assert.ok(spec.fallback.replicas > spec.minReplicaCount);
});

test('containers have as long for a stop as pods have', () => {
  const { terminationGracePeriodSeconds: seconds } = parse(readFileSync('deploy/helm/trivet/values.yaml', 'utf8')) as {
    readonly terminationGracePeriodSeconds: number;
  };
  assert.match(readFileSync('deploy/compose.yaml', 'utf8'), new RegExp(`stop_grace_period: ${seconds}s\n`));
  const guide = readFileSync('docs/how-to/install-with-docker.md', 'utf8');
  assert.match(guide, new RegExp(`docker stop --time ${seconds} `));
});

interface ComposeService {
  readonly restart?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

test('containers are started again after a crash or a reboot, and Trivet after the set-up of its database', () => {
  const { services } = parse(readFileSync('deploy/compose.yaml', 'utf8')) as {
    readonly services: Readonly<Record<string, ComposeService>>;
  };
  assert.deepEqual(
    Object.values(services).map(({ restart }) => restart),
    ['unless-stopped', 'unless-stopped'],
  );
  // The server that sets the database up listens at its unix socket alone.
  assert.match(services.postgres?.healthcheck?.test.join(' ') ?? '', /pg_isready -h 127\.0\.0\.1 /);
  const guide = readFileSync('docs/how-to/install-with-docker.md', 'utf8');
  for (const [command] of guide.matchAll(/^docker run (?!--rm).*$/gm))
    assert.match(command, / --restart unless-stopped /);
});

/** Returns the programs that a guide gives to the Node of the image, to be run on a folder in the place of `/data`. */
function listNodePrograms(guide: string, folder: string) {
  const programs = readFileSync(guide, 'utf8').matchAll(/ \/usr\/local\/bin\/node (-[ep]) '([^']+)'/g);
  return [...programs].map(([, flag = '', program = '']) => () => {
    const argv = [flag, program.replaceAll('/data/', `${folder}/`)];
    return execFileSync(process.execPath, argv, { encoding: 'utf8' });
  });
}

test('the guide for the move to PostgreSQL joins the keys of a volume to one setting', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-volume-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'keys'), 'first\nsecond\n');
  const programs = listNodePrograms('docs/how-to/use-postgresql.md', folder);
  assert.deepEqual(
    programs.map((run) => run()),
    ['first,second\n'],
  );
});

/**
 * Commands that only record what they were asked; `$failing` fails. The job completes in the wait for it whose number is the
 * length of `$complete_at`, and has failed from the beginning with `never`.
 */
const STAND_IN = `#!/bin/sh
folder="\${0%/*}"
echo "\${0##*/} $1\${2:+ $2}" >> "$folder/calls"
case " $1 $2" in
  " $failing "*) exit 1 ;;
  " exec "*) echo "$keys_of_volume" ;;
  *=complete) printf . >> "$folder/waits"; read -r waits < "$folder/waits"; [ "$waits" = "$complete_at" ] ;;
  *=failed) [ "$complete_at" = never ] ;;
  " get "*) [ "$complete_at" = never ] || echo 1 ;;
esac
`;

interface Move {
  readonly failing?: string;
  readonly keys_of_volume?: string;
  readonly complete_at?: string;
}

/** Runs the move of the guide with such commands; returns what it called. */
function move(environment: Move): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-move-'));
  for (const name of ['kubectl', 'helm', 'sleep']) writeFileSync(join(folder, name), STAND_IN, { mode: 0o755 });
  const [block] = listShellBlocks('docs/how-to/use-postgresql.md').filter((block) => block.text.includes('kubectl'));
  const env = { PATH: folder, keys_of_volume: 'first,second', complete_at: '.', ...environment };
  spawnSync('/bin/sh', ['-c', block?.text ?? ''], { env, timeout: 20_000 });
  const calls = readFileSync(join(folder, 'calls'), 'utf8').trimEnd().split('\n');
  rmSync(folder, { recursive: true });
  return calls;
}

const SECRET_CALLS = ['kubectl exec deployment/trivet', 'kubectl create secret'];
const START_CALLS = [...SECRET_CALLS, 'kubectl delete deployment/trivet', 'kubectl apply -f'];
const WAIT_FOR_COPY = 'kubectl wait --for=condition=complete';
const WAIT_FOR_FAILURE = 'kubectl wait --for=condition=failed';
const RESULT_CALLS = ['kubectl logs job/trivet-move', 'kubectl get job/trivet-move'];

test('the move to PostgreSQL in Kubernetes ends at the first command that fails', () => {
  assert.deepEqual(move({ failing: 'create' }), SECRET_CALLS);
  assert.deepEqual(move({ failing: 'apply' }), START_CALLS);
  assert.deepEqual(move({ keys_of_volume: '' }), SECRET_CALLS.slice(0, 1));
});

test('the move to PostgreSQL in Kubernetes waits for the copy as long as it takes', () => {
  const copied = [...RESULT_CALLS, 'helm upgrade trivet'];
  assert.deepEqual(move({}), [...START_CALLS, WAIT_FOR_COPY, ...copied]);
  const again = [WAIT_FOR_COPY, WAIT_FOR_FAILURE, 'sleep 1'];
  assert.deepEqual(move({ complete_at: '...' }), [...START_CALLS, ...again, ...again, WAIT_FOR_COPY, ...copied]);
  assert.deepEqual(move({ failing: 'logs' }), [...START_CALLS, WAIT_FOR_COPY, ...copied]);
});

test('the move to PostgreSQL in Kubernetes starts no empty service after a job that failed, with or without a log', () => {
  const failed = [...START_CALLS, WAIT_FOR_COPY, WAIT_FOR_FAILURE, ...RESULT_CALLS];
  assert.deepEqual(move({ complete_at: 'never' }), failed);
  assert.deepEqual(move({ complete_at: 'never', failing: 'logs' }), failed);
});

test('the job that moves a store fails after the hour that the guide names, as when its image cannot be pulled', () => {
  const { spec } = parse(readFileSync('deploy/kubernetes/move-to-postgresql.yaml', 'utf8')) as {
    readonly spec: { readonly activeDeadlineSeconds?: number };
  };
  assert.equal(spec.activeDeadlineSeconds, 3600);
  assert.match(
    readFileSync('docs/how-to/use-postgresql.md', 'utf8'),
    /fails after an hour \(`activeDeadlineSeconds`\)/,
  );
});

test('each `kubectl wait` of the guides says how long: without that it takes 30 seconds, too few to pull an image', () => {
  const guides = globSync('docs/how-to/*.md').map((file) => readFileSync(file, 'utf8'));
  const waits = guides.flatMap((text) => text.match(/kubectl wait [^&|;]+/g) ?? []);
  assert.ok(waits.length >= 4);
  assert.deepEqual(
    waits.filter((command) => !/ --timeout=\d+[sm]/.test(command)),
    [],
  );
});

test('the guide makes the secrets of Compose once, in the file that each start reads', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-compose-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'deploy'));
  const [block] = listShellBlocks('docs/how-to/install-with-docker.md').filter((one) => one.text.includes('.env'));
  const [line = ''] = block?.text.split('\n') ?? [];
  const file = join(folder, 'deploy', '.env');
  const makeSecrets = () => {
    assert.equal(spawnSync('/bin/sh', ['-c', line], { cwd: folder }).status, 0);
    return readFileSync(file, 'utf8');
  };
  const made = makeSecrets();
  assert.match(made, /^SECRET_KEYS=[\w+/]{43}=\nPOSTGRES_PASSWORD=[0-9a-f]{32}\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(makeSecrets(), made);
  const asked = [...readFileSync('deploy/compose.yaml', 'utf8').matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  assert.deepEqual(new Set(asked), new Set(['SECRET_KEYS', 'POSTGRES_PASSWORD']));
});

test('the commands of the guide share a volume, so they run as the user of the image', () => {
  const guide = readFileSync('docs/how-to/install-with-docker.md', 'utf8');
  const commands = [...guide.matchAll(/^docker run (?:.*\\\n)*.*$/gm)].map(([command]) => command);
  const onVolume = commands.filter((command) => command.includes('-v trivet:/data'));
  assert.equal(onVolume.length, 2);
  // Files of the store are open to their owner alone.
  assert.deepEqual(
    onVolume.filter((command) => command.includes('--user')),
    [],
  );
});

/** Runs the health check of the image, with the Node of this test. */
async function checkHealth(HTTP_PORT: string, imported = ''): Promise<{ code: number; stdout: string }> {
  const [, command = ''] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(readFileSync('deploy/Dockerfile', 'utf8')) ?? [];
  const [, ...argv] = JSON.parse(command) as string[];
  const options = ['--import', `data:text/javascript,${encodeURIComponent(imported)}`, ...argv];
  const child = spawn(process.execPath, options, { env: { HTTP_PORT }, stdio: ['ignore', 'pipe', 'inherit'] });
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code: code as number, stdout };
}

test('the health check of the image takes an empty HTTP_PORT as not given, as the program does', async () => {
  const show = 'globalThis.fetch = async (url) => ({ ok: console.log(url) === undefined })';
  assert.equal((await checkHealth('', show)).stdout, 'http://127.0.0.1:8080/healthz\n');
  assert.equal((await checkHealth('9090', show)).stdout, 'http://127.0.0.1:9090/healthz\n');
});

test('the image is healthy while the database is away from a process that predicts, and unhealthy without the process', {
  skip: findReasonToSkip('postgres'),
}, async () => {
  const cluster = await startPostgresCluster();
  const databaseUrl = await createTestDatabase(cluster.socketDir, 'health');
  await using program = await startProgram({ DATABASE_URL: databaseUrl, PARTS: 'prediction' });
  const { port } = new URL(program.httpUrl);
  await cluster.stop();
  await waitUntil(async () => (await fetch(`${program.httpUrl}/readyz`)).status === 503);
  assert.equal((await checkHealth(port)).code, 0);
  await program.kill();
  assert.equal((await checkHealth(port)).code, 1);
});

test('a variable that is not a setting is found', () => {
  assert.deepEqual(findUnknown('- { name: LLM_D_PROT, value: "8000" }'), ['LLM_D_PROT']);
  assert.ok(manifests.length >= 3);
});
