/** Clients generated from an earlier proto file keep working: `buf breaking` against the published messages and against what was published. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { writeContractProto } from './support/rules/contract-messages.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-proto-'));
after(() => rmSync(folder, { recursive: true }));

/** The published interface names messages, fields and the method. It has no options of languages, which may be added. */
const OPTION_RULES = [
  'FILE_SAME_CSHARP_NAMESPACE',
  'FILE_SAME_GO_PACKAGE',
  'FILE_SAME_JAVA_MULTIPLE_FILES',
  'FILE_SAME_JAVA_OUTER_CLASSNAME',
  'FILE_SAME_JAVA_PACKAGE',
  'FILE_SAME_PHP_METADATA_NAMESPACE',
  'FILE_SAME_PHP_NAMESPACE',
  'FILE_SAME_RUBY_PACKAGE',
];

const baselines = {
  contract: { against: join(folder, 'contract'), except: OPTION_RULES },
  /** Written by `npm run proto:publish`. */
  'published messages': { against: 'test/fixtures/published-messages.binpb', except: [] },
} as const;

const contractFile = join(baselines.contract.against, 'prediction/v1/prediction.proto');
mkdirSync(dirname(contractFile), { recursive: true });
writeFileSync(contractFile, writeContractProto());

/** The lines in which buf names what would break; none when nothing would. */
function findBreaks(protoFolder: string, baseline: keyof typeof baselines): string[] {
  const { against, except } = baselines[baseline];
  const config = { version: 'v2', breaking: { use: ['FILE'], except } };
  const { status, stdout, stderr } = spawnSync(
    resolve('node_modules/.bin/buf'),
    ['breaking', '.', '--against', resolve(against), '--config', JSON.stringify(config)],
    { cwd: protoFolder, encoding: 'utf8' },
  );
  assert.ok(status === 0 || status === 100, stderr);
  return stdout.split('\n').filter((line) => line !== '');
}

for (const baseline of Object.keys(baselines) as (keyof typeof baselines)[])
  test(`the proto files break no client of the ${baseline}`, () => assert.deepEqual(findBreaks('proto', baseline), []));

const breaks: [change: string, baseline: keyof typeof baselines, file: string, from: string, to: string][] = [
  ['a renamed field', 'contract', 'prediction', 'double kv_cache_usage', 'double kv_usage'],
  ['another number', 'contract', 'prediction', 'kv_cache_usage = 7', 'kv_cache_usage = 13'],
  ['another type', 'contract', 'prediction', 'int32 inflight_tokens', 'int64 inflight_tokens'],
  ['another method', 'contract', 'prediction', 'rpc Predict(', 'rpc Ask('],
  ['another Go package', 'published messages', 'prediction', ';predictionv1', ';predict'],
  [
    'a field that left a oneof',
    'published messages',
    'observation',
    'optional double ttft_millis',
    'double ttft_millis',
  ],
  ['another service', 'published messages', 'hermes/prediction', 'service PredictionService', 'service Prediction'],
];
for (const [change, baseline, file, from, to] of breaks)
  test(`buf names ${change} as a break of the ${baseline}`, () => {
    const changed = mkdtempSync(join(folder, 'changed-'));
    cpSync('proto', changed, { recursive: true });
    const path = join(changed, file, 'v1', `${file.split('/').at(-1)}.proto`);
    const text = readFileSync(path, 'utf8');
    assert.ok(text.includes(from));
    writeFileSync(path, text.replace(from, to));
    assert.notDeepEqual(findBreaks(changed, baseline), []);
  });
