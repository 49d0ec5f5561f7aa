import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTableTimer } from './step-table.ts';

const table = (path: string, text: string) => ({ path, text });
const tables = {
  dense: table(
    'dense.csv',
    'layer,tokens,time_us\nqkv_proj,1,10\nqkv_proj,101,110\nlayernorm,1,1\nlayernorm,101,1\nembedding,1,5\nembedding,101,5\n',
  ),
  attention: table(
    'attention.csv',
    'prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n100,0,0,0,50\n100,100,0,0,70\n200,0,0,0,150\n200,100,0,0,170\n0,0,1,100,4\n0,0,1,200,6\n0,0,2,100,8\n0,0,2,200,12\n',
  ),
  perSequence: table('per_sequence.csv', 'layer,sequences,time_us\nlm_head,1,100\nlm_head,3,120\n'),
};
const timer = createTableTimer(tables, 10);
const nothing = {
  prefillTokens: 0,
  prefillAttention: 0,
  prefillSequences: 0,
  decodeSequences: 0,
  decodeContextTokens: 0,
};

test('a decoding step repeats the layer, interpolates between the rows, and pays the head once', () => {
  const { ms } = timer({ ...nothing, decodeSequences: 2, decodeContextTokens: 300 });
  const layer = 11 + 2 * 1 + 10;
  assert.ok(Math.abs(ms - (1.5 + (10 * layer + 5 + 110) / 1000)) < 1e-9);
});

test('a chunk that continues a prompt pays for the context before it', () => {
  const first = timer({ ...nothing, prefillTokens: 100, prefillSequences: 1, prefillAttention: 100 * 50 });
  const second = timer({ ...nothing, prefillTokens: 100, prefillSequences: 1, prefillAttention: 100 * (100 + 50) });
  assert.ok(Math.abs(second.ms - first.ms - (10 * 20) / 1000) < 1e-9);
});

test('beyond the table the last slope goes on', () => {
  const at = (tokens: number) =>
    timer({ ...nothing, prefillTokens: tokens, prefillSequences: 1, prefillAttention: 0 }).ms;
  assert.ok(Math.abs(at(400) - at(300) - (at(300) - at(200))) < 1e-9);
});

test('a table with other columns is refused', () => {
  assert.throws(
    () => createTableTimer({ ...tables, dense: table('dense.csv', 'a,b\n1,2\n') }, 1),
    /Cannot read the step table "dense.csv": its first line must be "layer,tokens,time_us", got "a,b"/,
  );
});

test('a measurement that is repeated counts with its mean', () => {
  const repeat = (which: keyof typeof tables, rows: string) => {
    const { path, text } = tables[which];
    return { ...tables, [which]: { path, text: `${text}${rows}` } };
  };
  const step = { ...nothing, prefillTokens: 150, prefillSequences: 1, prefillAttention: 150 * 100 };
  const load = { ...step, decodeSequences: 1, decodeContextTokens: 150 };
  const { ms } = timer(load);
  for (const repeated of [
    repeat('dense', 'qkv_proj,1,14\nqkv_proj,1,6\n'),
    repeat('attention', '100,0,0,0,50\n200,100,0,0,160\n200,100,0,0,180\n0,0,1,100,4\n'),
    repeat('perSequence', 'lm_head,3,120\n'),
  ])
    assert.ok(Math.abs(createTableTimer(repeated, 10)(load).ms - ms) < 1e-9);
});

const wrong: [row: string, message: RegExp][] = [
  ['qkv_proj,x,10', /tokens must be a number of 0 or more, got "x" at dense\.csv:2$/],
  ['qkv_proj,1,-3', /time_us must be a number of 0 or more, got "-3" at dense\.csv:2$/],
  ['qkv_proj,1,Infinity', /time_us must be .*, got "Infinity"/],
  ['qkv_proj,,10', /tokens must be .*, got ""/],
  ['qkv_proj,1', /time_us must be .*, got ""/],
];
for (const [row, message] of wrong)
  test(`a table with the row "${row}" is refused`, () =>
    assert.throws(
      () => createTableTimer({ ...tables, dense: table('dense.csv', `layer,tokens,time_us\n${row}\n`) }, 1),
      message,
    ));
