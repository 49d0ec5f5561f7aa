import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-capacity-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: join(folder, 'data') };
const trace = join(folder, 'trace.jsonl');

interface Answer {
  readonly requestsPerSecond: number;
  readonly limitedBy: string;
  readonly servers: readonly { readonly name: string }[];
}

test('the capacity of a pool is found from the samples of the store and from a file', async () => {
  const pool = ['--servers', 'medium:2', '--workload', 'bursts', '--rate', '14', '--duration', '120'];
  await runTrivet(['simulate', ...pool, '--output', trace], { env });
  await runTrivet(['model', 'train', '--model', 'm', '--input', trace, '--promote', 'true'], { env });
  const ask = async (...more: string[]) =>
    await runTrivet(['model', 'capacity', 'm', '--output-tokens', '150', ...more], { env });

  const limits = ['--ttft', '2000', '--tpot', '30'];
  const empty = await ask(...limits);
  assert.match(empty.stderr, /Cannot find the capacity: 0 samples of the pod type ""/);

  const fromFile = await ask(...limits, '--input', trace, '--json');
  const answer = JSON.parse(fromFile.stdout) as Answer;
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
  assert.match((await ask('--tpot', '1')).stdout, /Not even idle servers keep these limits/);
  assert.match((await ask()).stderr, /--ttft, --tpot or both must give a limit/);
  assert.match(
    (await ask(...limits, '--servers', 'x')).stderr,
    /no sample is of the server "x"; known are medium-0, medium-1/,
  );
  assert.match((await ask('--tpot', '30', '--quantile', '2')).stderr, /it must be a number from 0.5 to 0.99/);
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
