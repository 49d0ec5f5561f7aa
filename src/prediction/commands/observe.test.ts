import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/run-trivet.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-observe-'));
after(() => rmSync(folder, { recursive: true }));

test('trivet observe leaves out rows with a text that no store keeps, and takes the others', async () => {
  const row = { target_model: 'm', input_token_length: 9, ttft_millis: 3 };
  const rows = [row, { ...row, server_ip: 'a\0' }, { ...row, pod_type: '\ud800' }, { ...row, target_model: '\0' }, row];
  const path = join(folder, 'rows.jsonl');
  writeFileSync(path, rows.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const env = { TRIVET_DATA_DIR: join(folder, 'data') };
  const ended = await runTrivet(['observe', '--input', path, '--json'], { env });
  assert.equal(ended.code, 0, ended.stderr);
  const { accepted, refusals } = JSON.parse(ended.stdout) as { accepted: number; refusals: { reason: string }[] };
  assert.equal(accepted, 2);
  assert.deepEqual(refusals.map(({ reason }) => reason).toSorted(), [
    'pod_type must be valid Unicode, got half of a surrogate pair',
    'server_ip must not contain the character NUL',
    'target_model must not contain the character NUL',
  ]);
});
