import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTableTimer } from './step-table.ts';

const tables = {
  dense:
    'layer,tokens,time_us\nqkv_proj,1,10\nqkv_proj,101,110\nlayernorm,1,1\nlayernorm,101,1\nembedding,1,5\nembedding,101,5\n',
  attention:
    'prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n100,0,0,0,50\n100,100,0,0,70\n200,0,0,0,150\n200,100,0,0,170\n0,0,1,100,4\n0,0,1,200,6\n0,0,2,100,8\n0,0,2,200,12\n',
  perSequence: 'layer,sequences,time_us\nlm_head,1,100\nlm_head,3,120\n',
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
    () => createTableTimer({ ...tables, dense: 'a,b\n1,2\n' }, 1),
    /its first line must be "layer,tokens,time_us", got "a,b"/,
  );
});
