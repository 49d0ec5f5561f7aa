/** Questions of an operator and of an autoscaler, asked of the running service. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '../support/basics/wait-until.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, startProgram } from '../support/programs/start-program.ts';

test('the service tells the capacity of its servers, and the headroom of each', async () => {
  const dataDir = createDataDir();
  const env = { TRIVET_DATA_DIR: dataDir };
  const trace = join(dataDir, 'trace.jsonl');
  const pool = ['--servers', 'large:1,small:1', '--workload', 'bursts', '--rate', '14', '--duration', '120'];
  await runTrivet(['simulate', ...pool, '--output', trace], { env });
  await runTrivet(['model', 'train', '--model', 'm', '--input', trace, '--promote', 'true'], { env });
  await runTrivet(['observe', '--input', trace, '--model', 'm'], { env });
  const limit = { PREDICTION_HEADROOM_TPOT_MS: '40', PREDICTION_LEARNING: 'false' };
  await using program = await startProgram(limit, dataDir);

  const ask = (query: string) => fetch(`${program.httpUrl}/prediction/capacity?${query}`);
  const [first, second] = await Promise.all([
    ask('model=m&tpot_ms=40&output_tokens=150'),
    ask('model=m&tpot_ms=40&output_tokens=150'),
  ]);
  assert.deepEqual(
    [first.status, second.status].sort((a, b) => a - b),
    [200, 429],
  );
  const answer = (await (first.status === 200 ? first : second).json()) as {
    readonly requests_per_second: number;
    readonly prompt_tokens: number;
    readonly output_tokens: number;
    readonly assumed: readonly string[];
    readonly servers: readonly { readonly server: string; readonly concurrency: number }[];
  };
  assert.ok(answer.requests_per_second > 2, JSON.stringify(answer));
  assert.deepEqual([answer.output_tokens, answer.assumed], [150, ['prompt_tokens']]);
  const assuming = (await (await ask('model=m&tpot_ms=40')).json()) as typeof answer;
  assert.deepEqual(assuming.assumed, ['prompt_tokens', 'output_tokens']);
  assert.ok(assuming.output_tokens > 1 && assuming.prompt_tokens > 1, JSON.stringify(assuming));
  assert.deepEqual(
    answer.servers.map(({ server }) => server),
    ['large-0', 'small-1'],
  );

  const refusals: [query: string, status: number, message: RegExp][] = [
    ['model=other&tpot_ms=40&output_tokens=150', 404, /no version of the model \\"other\\" is served/],
    [
      'model=m&tpot_ms=40&output_tokens=150&servers=x',
      400,
      /no sample is of the server \\"x\\"; known are large-0, small-1/,
    ],
    ['model=m&tpot_ms=40&output_tokens=150&servers=', 400, /no sample is of the server \\"\\"/],
    ['model=m&tpot_ms=40&output_tokens=150&servers=small-1,small-1', 400, /server \\"small-1\\" must be named once/],
    ['model=m&tpot_ms=40&output_tokens=150&pod_type=decode', 400, /0 samples of the pod type \\"decode\\"/],
  ];
  for (const [query, status, message] of refusals) {
    const refused = await ask(query);
    assert.deepEqual([refused.status, refused.headers.get('content-type')], [status, 'application/problem+json']);
    assert.match(await refused.text(), message);
  }

  const read = async () => await (await fetch(`${program.httpUrl}/metrics`)).text();
  const series = /^trivet_prediction_capacity_requests\{model="m",server="(\S+)"\} (\d+)$/gm;
  const found = await waitUntil(async () => {
    const counts = [...(await read()).matchAll(series)].map(([, server, count]) => [server!, Number(count)] as const);
    return counts.length >= 2 && new Map(counts);
  });
  assert.ok(found.get('large-0')! > 2 * found.get('small-1')!, JSON.stringify([...found]));
});
