import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { observePool } from '../../../test/support/prediction/observed-pool.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-train-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: join(folder, 'data') };

async function train(argv: readonly string[], input: string) {
  const { code, stdout, stderr } = await runTrivet(['model', 'train', '--input', '-', '--json', ...argv], {
    env,
    input,
  });
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as { judgement: { judgedRows: number }; rows: object; refusals: object[] };
}

test('rows with times are judged by the newest of them, in whatever order the file has them', async () => {
  const lines = observePool({ rows: 200, servers: [1, 2] }).map(({ atMs, input, ttftMs }, i) =>
    JSON.stringify({
      at: atMs,
      server_ip: input.serverIp,
      input_token_length: input.inputTokenLength,
      num_request_running: input.numRequestRunning,
      // The newest rows are slow: judged by the oldest, another error comes out.
      ttft_millis: (i < 150 ? 1 : 3) * ttftMs!,
    }),
  );
  const ascending = await train(['--model', 'ascending'], lines.join('\n'));
  const descending = await train(['--model', 'descending'], lines.toReversed().join('\n'));
  assert.equal(ascending.judgement.judgedRows, 40);
  assert.deepEqual(descending.judgement, ascending.judgement);
});

test('rows of a CSV with an empty prompt length are left out, and counted', async () => {
  const rows = Array.from({ length: 50 }, (_, i) => `${i < 5 ? '' : 100 + i},${50 + i}`);
  const csv = `input_token_length,ttft_millis\n${rows.join('\n')}\n`;
  const { rows: used, refusals } = await train(['--model', 'csv'], csv);
  assert.deepEqual(used, { total: 45, ttft: 45, tpot: 0 });
  const reason = 'input_token_length must be present';
  assert.deepEqual(refusals, [{ reason, rows: 5, firstAt: 'standard input:2' }]);
});
