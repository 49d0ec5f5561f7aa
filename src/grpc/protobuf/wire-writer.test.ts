import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WireReader } from './wire-reader.ts';
import { WireWriter } from './wire-writer.ts';

test('a field has the bytes that protobuf documents', () => {
  const inner = new WireWriter().count(1, 150);
  assert.equal(inner.finish().toString('hex'), '089601');
  assert.equal(new WireWriter().message(3, inner).finish().toString('hex'), '1a03089601');
  assert.equal(new WireWriter().string(2, 'testing').finish().toString('hex'), '120774657374696e67');
  assert.equal(new WireWriter().string(2, '').count(1, 0).finish().length, 0);
});

test('numbers of any length and long values are written whole', () => {
  for (const value of [1, 127, 128, 16_383, 16_384, 2 ** 31 - 1]) {
    const reader = new WireReader(new WireWriter().count(1, value).count(2, 7).finish());
    assert.equal(reader.readTag(), 8);
    assert.equal(reader.readInt32(), value);
    assert.equal(reader.readTag(), 16);
    assert.equal(reader.readInt32(), 7);
    assert.equal(reader.hasMore(), false);
  }
  assert.equal(
    new WireWriter()
      .count(1, 2 ** 53 - 1)
      .finish()
      .toString('hex'),
    '08ffffffffffffff0f',
  );
  const long = new WireWriter().string(1, 'é'.repeat(100)).finish();
  assert.equal(long.subarray(3).toString('utf8'), 'é'.repeat(100));
  assert.equal(long.subarray(0, 3).toString('hex'), '0ac801');
});
