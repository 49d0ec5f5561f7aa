import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { createEmptyStore } from '../../../test/support/store/engines.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-predict-'));
after(() => rmSync(folder, { recursive: true }));
const env = { TRIVET_DATA_DIR: folder };
await createEmptyStore(folder);

async function predict(input: string, ...options: string[]) {
  return await runTrivet(['predict', '--model', 'unheard-of', '--input', '-', ...options], { env, input });
}

function readTtfts(stdout: string): number[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { predicted_ttft_millis: number }).predicted_ttft_millis);
}

test('rows of either spelling of our fields, and whole observations, get the same answer', async () => {
  const { stdout, stderr, code } = await predict(
    [
      '{"input_id": 7, "input_token_length": 4000, "num_request_waiting": 3}',
      '{"inputId": 7, "inputTokenLength": 4000, "numRequestWaiting": 3}',
      '{"observation": {"input": {"inputTokenLength": 4000, "numRequestWaiting": 3}, "ttftMillis": 9, "outputTokens": 2}}',
      '{"input_token_length": 1}',
    ].join('\n'),
    '--json',
  );
  assert.equal(code, 0, stderr);
  const [snake, camel, whole, short] = readTtfts(stdout);
  assert.deepEqual([camel, whole], [snake, snake]);
  assert.ok(short! < snake!);
  assert.match(stdout.split('\n')[1]!, /"input_id":7/);
  assert.doesNotMatch(stderr, /Fields that are not used/);
  assert.match(stderr, /Nothing was learned yet about "unheard-of": the prior answers/);
  assert.match(stderr, /Answered by prior@1\n$/);
});

test('fields that are not used are named beside the answers', async () => {
  const { stderr, code } = await predict('{"input_token_length": 4000, "waiting": 3}\n'.repeat(2));
  assert.equal(code, 0);
  assert.match(stderr, /Fields that are not used: waiting \(2 rows\)/);
});

test('a row of other fields altogether is omitted rather than answered as idle', async () => {
  const some = await predict('{"prompt": 4000, "ttft_millis": 3}\n{"input_token_length": 4000}\n', '--json');
  assert.equal(some.code, 0);
  assert.equal(readTtfts(some.stdout).length, 1);
  assert.match(some.stderr, /Line 1 is omitted: none of its fields is known, which are .*input_token_length/);
  assert.match(some.stderr, /Answered by prior@1, 1 omitted\n$/);
  const none = await predict('prompt,waiting\n'.concat('4000,3\n'.repeat(30)));
  assert.equal(none.code, 2);
  assert.equal(none.stdout, '');
  assert.equal(none.stderr.match(/is omitted:/g)?.length, 10);
  assert.match(none.stderr, /Cannot predict: all 30 rows are omitted\n$/);
});

const refused: [title: string, input: string, message: RegExp][] = [
  ['a JSON array', '[\n{"input_token_length": 1}\n]', /it is a JSON array, it must have one JSON object a line/],
  [
    'CSV with semicolons',
    'input_token_length;server_ip\n1;a\n',
    /must be a header, names with commas between them, got "input_token_length;server_ip"/,
  ],
];
for (const [title, input, message] of refused)
  test(`${title} is refused for what it is`, async () => {
    const { stderr, code } = await predict(input);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });

test('nothing to predict is said, and no error', async () => {
  const { stdout, stderr, code } = await predict('');
  assert.deepEqual([code, stdout], [0, '']);
  assert.match(stderr, /The input is empty\n$/);
});

test('a name that no model can have is refused', async () => {
  const { stderr, code } = await runTrivet(['predict', '--model', '', '--input', '-'], { env, input: '' });
  assert.equal(code, 2);
  assert.match(stderr, /Cannot use this model name/);
});
