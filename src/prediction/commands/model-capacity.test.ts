import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-capacity-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: join(folder, 'data') };
const trace = join(folder, 'trace.jsonl');

interface Answer {
  readonly requestsPerSecond: number;
  readonly limitedBy: string;
  readonly outputTokens: number;
  readonly assumed: readonly string[];
  readonly servers: readonly { readonly name: string }[];
}

test('the capacity of a pool is found from the samples of the store and from a file', async () => {
  const pool = ['--servers', 'medium:2', '--workload', 'bursts', '--rate', '14', '--duration', '120'];
  await runTrivet(['simulate', ...pool, '--output', trace], { env });
  await runTrivet(['model', 'train', '--model', 'm', '--input', trace, '--promote', 'true'], { env });
  const ask = async (...more: string[]) =>
    await runTrivet(['model', 'capacity', 'm', '--output-tokens', '150', ...more], { env });

  const limits = ['--ttft', '2s', '--tpot', '30'];
  const empty = await ask(...limits);
  assert.match(empty.stderr, /there are 0 samples of the pod type "", and at least 50 are needed$/m);

  const fromFile = await ask(...limits, '--input', trace, '--json');
  const answer = JSON.parse(fromFile.stdout) as Answer;
  assert.deepEqual([answer.outputTokens, answer.assumed], [150, ['promptTokens']]);
  assert.ok(answer.requestsPerSecond > 8 && answer.requestsPerSecond < 30, fromFile.stdout);
  assert.deepEqual(
    answer.servers.map(({ name }) => name),
    ['medium-0', 'medium-1'],
  );
  await runTrivet(['observe', '--input', trace, '--model', 'm'], { env });
  assert.deepEqual(JSON.parse((await ask(...limits, '--json')).stdout), answer);

  const one = JSON.parse((await ask(...limits, '--servers', 'medium-1', '--json')).stdout) as Answer;
  assert.ok(one.requestsPerSecond < 0.65 * answer.requestsPerSecond);
  assert.match(
    (await ask(...limits)).stdout,
    /requests a second, .* under way on average\np90 there: TTFT .*\nAbove it/s,
  );
  const bare = await runTrivet(['model', 'capacity', 'm', '--ttft', '2000', '--tpot', '30ms'], { env });
  assert.match(
    bare.stdout,
    /^For prompts of \d+ tokens \(as in the samples\) and answers of \d+ \(as in the samples\)$/m,
  );
  assert.match((await ask(...limits)).stdout, /^For prompts of \d+ tokens \(as in the samples\) and answers of 150$/m);
  assert.match(
    (await ask('--tpot', '100000')).stdout,
    /^At least .* requests a second, .*\n.*\nThe servers can take at least this/,
  );
  assert.match((await ask('--tpot', '1')).stdout, /Not even idle servers keep these limits/);
  assert.match((await ask()).stderr, /--ttft, --tpot or both must give a limit/);
  assert.match(
    (await ask(...limits, '--servers', 'x')).stderr,
    /no sample is of the server "x"; known are medium-0, medium-1/,
  );
  assert.match(
    (await ask(...limits, '--servers', 'medium-1,medium-1')).stderr,
    /the server "medium-1" must be named once/,
  );
  assert.match(
    (await ask(...limits, '--pod-type', 'decode')).stderr,
    /there are 0 samples of the pod type "decode", and at least 50 are needed; other pod types are ""/,
  );
});

test('rows without a time of day show the same capacity from the store as from their file', async () => {
  const undated = join(folder, 'undated.jsonl');
  const rows = readFileSync(trace, 'utf8').trim().split('\n');
  writeFileSync(undated, rows.map((row) => `${JSON.stringify({ ...JSON.parse(row), at: undefined })}\n`).join(''));
  const own = { TRIVET_DATA_DIR: join(folder, 'undated') };
  await runTrivet(['model', 'train', '--model', 'm', '--input', trace, '--promote', 'true'], { env: own });
  await runTrivet(['observe', '--input', undated, '--model', 'm'], { env: own });
  const limits = ['--output-tokens', '150', '--ttft', '2s', '--tpot', '30', '--json'];
  const ask = async (...more: string[]) => {
    const { stdout } = await runTrivet(['model', 'capacity', 'm', ...limits, ...more], { env: own });
    return (JSON.parse(stdout) as Answer).requestsPerSecond;
  };
  assert.equal(await ask(), await ask('--input', undated));
});

const LIMIT = ['--tpot', '40'];
const LENGTH = ['--output-tokens', '150'];
const refusals: [argv: readonly string[], message: RegExp][] = [
  [LENGTH, /--ttft, --tpot or both must give a limit/],
  [[...LIMIT, ...LENGTH], /no version of the model "unknown"|unknown/],
  ...['soon', '-5', '0', 'NaN', 'Infinity', '1e300', ''].map((value): [readonly string[], RegExp] => [
    ['--ttft', value, ...LENGTH],
    /argument '.*' is invalid\. it must be a number of ms, or a duration .*; 0\.001 to 86400000 ms\./,
  ]),
  ...['0', '1', '2', 'NaN'].map((value): [readonly string[], RegExp] => [
    [...LIMIT, ...LENGTH, '--quantile', value],
    /it must be a number from 0\.5 to 0\.99\./,
  ]),
  ...['0', '1e9', '-1'].map((value): [readonly string[], RegExp] => [
    [...LIMIT, '--output-tokens', value],
    /it must be a number from 1 to 1000000\./,
  ]),
];
for (const [argv, message] of refusals)
  test(`trivet model capacity ${argv.join(' ')} is refused by the name of the option`, async () => {
    const { code, stderr } = await runTrivet(['model', 'capacity', 'unknown', ...argv], { env });
    assert.notEqual(code, 0);
    assert.match(stderr, message);
  });

test('recordings that begin together are named, and rows of another model are left out', async () => {
  const both = join(folder, 'both.jsonl');
  const record = async (rate: string, start: string) => {
    const output = join(folder, `${rate}.jsonl`);
    const options = ['--servers', 'medium:1', '--workload', 'poisson', '--duration', '60'];
    await runTrivet(['simulate', ...options, '--rate', rate, '--start', start, '--output', output], { env });
    return readFileSync(output, 'utf8');
  };
  const ask = async (lines: string) => {
    writeFileSync(both, lines);
    const { stderr } = await runTrivet(
      ['model', 'capacity', 'm', '--tpot', '40', '--output-tokens', '150', '--input', both],
      {
        env,
      },
    );
    return stderr;
  };
  const first = await record('6', '2026-01-01T00:00Z');
  assert.match(await ask(first + (await record('14', '2026-01-01T00:00Z'))), /Do the times of recordings overlap\?/);
  const apart = await ask(
    first + (await record('14', '2026-01-01T01:00Z')) + first.split('\n')[0]!.replace('{', '{"target_model":"x",'),
  );
  assert.doesNotMatch(apart, /overlap/);
  assert.match(apart, /Rows left out\n.*\n +1 +target_model is "x"/);
});
