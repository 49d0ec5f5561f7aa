import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Field } from './fields.ts';
import { HpackDecoder, HpackError } from './hpack-decoder.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';

function decode(decoder: HpackDecoder, hex: string): Record<string, string> {
  return toRecord(decoder.decode(Buffer.from(hex.replaceAll(' ', ''), 'hex'))!);
}

function toRecord(fields: readonly Field[]): Record<string, string> {
  return Object.fromEntries(fields.map(({ name, value }) => [name, value]));
}

const FIRST = { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'www.example.com' };
const THIRD = {
  ':method': 'GET',
  ':scheme': 'https',
  ':path': '/index.html',
  ':authority': 'www.example.com',
  'custom-key': 'custom-value',
};

test('RFC 7541 C.3: requests without Huffman code are decoded', () => {
  const decoder = new HpackDecoder();
  assert.deepEqual(decode(decoder, '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d'), FIRST);
  assert.deepEqual(decode(decoder, '8286 84be 5808 6e6f 2d63 6163 6865'), { ...FIRST, 'cache-control': 'no-cache' });
  assert.deepEqual(decode(decoder, '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65'), THIRD);
});

test('RFC 7541 C.4: requests with Huffman code are decoded', () => {
  const decoder = new HpackDecoder();
  assert.deepEqual(decode(decoder, '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'), FIRST);
  assert.deepEqual(decode(decoder, '8286 84be 5886 a8eb 1064 9cbf'), { ...FIRST, 'cache-control': 'no-cache' });
  assert.deepEqual(decode(decoder, '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf'), THIRD);
});

test('RFC 7541 C.2.2 and C.2.3: literals that are not added to the table are decoded', () => {
  const decoder = new HpackDecoder();
  assert.deepEqual(decode(decoder, '040c 2f73 616d 706c 652f 7061 7468'), { ':path': '/sample/path' });
  assert.deepEqual(decode(decoder, '1008 7061 7373 776f 7264 0673 6563 7265 74'), { password: 'secret' });
  assert.throws(() => decode(decoder, 'be'), /points nowhere/);
});

test('a block of references alone means something else once the table has changed', () => {
  const decoder = new HpackDecoder();
  decode(decoder, '4001 6101 31');
  assert.deepEqual(decode(decoder, 'be'), { a: '1' });
  assert.deepEqual(decode(decoder, 'be'), { a: '1' });
  decode(decoder, '4001 6101 32');
  assert.deepEqual(decode(decoder, 'be'), { a: '2' });
  assert.deepEqual(decode(decoder, 'bf'), { a: '1' });
  decode(decoder, '20');
  assert.throws(() => decode(decoder, 'be'), /points nowhere/);
});

const faults: [why: string, hex: string, message: RegExp][] = [
  ['a reference to entry 0', '80', /points nowhere/],
  ['a reference beyond the table', 'fe', /points nowhere/],
  ['an integer that does not end', 'ffffffffffffff', /integer is too large/],
  ['a string longer than the block', '0085616263', /string is cut off/],
  ['a name that is cut off', '4005616263', /string is cut off/],
  ['a value that is missing', '400161', /block is cut off/],
  ['a table larger than allowed', '3fe21f', /larger than allowed/],
  ['a size of the table after a field', '82 20', /changes after a field/],
  ['padding of zeros', '008194 0161', /padding of a string is wrong/],
  ['padding of more than seven bits', '0082 1fff 0161', /padding of a string is wrong/],
  ['the end of the string inside a string', '0084 ffff ffff 0161', /end of a string is written out/],
];
for (const [why, hex, message] of faults)
  test(`a block with ${why} is a fault`, () => {
    assert.throws(
      () => decode(new HpackDecoder(), hex),
      (error) => error instanceof HpackError && message.test(error.message),
    );
  });

test('headers that grow too large by references give no fields, and the blocks after them are decoded', () => {
  const decoder = new HpackDecoder();
  const value = 'x'.repeat(3000);
  decoder.decode(Buffer.concat([Buffer.from('400161', 'hex'), Buffer.of(0x7f, 0xb9, 0x16), Buffer.from(value)]));
  assert.equal(decoder.decode(Buffer.of(0xbe))?.[0]?.value, value);
  const bomb = Buffer.concat([Buffer.alloc(100, 0xbe), Buffer.from('4001620131', 'hex')]);
  assert.equal(decoder.decode(bomb), undefined);
  assert.equal(decoder.decode(Buffer.alloc(100, 0xbf)), undefined);
  assert.deepEqual(decode(decoder, 'be'), { b: '1' });
  assert.equal(decoder.decode(Buffer.of(0xbf))?.[0]?.value, value);
});

test('a block has at most as many fields as the smallest ones that are allowed', () => {
  const decoder = new HpackDecoder();
  assert.equal(decoder.decode(Buffer.alloc(1024, 0x82)), undefined);
  assert.throws(() => decoder.decode(Buffer.alloc(1025, 0x82)), /too many fields/);
});

test('the blocks that we write are read back', () => {
  const text = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 300,
  });
  fc.assert(
    fc.property(fc.dictionary(text, text), (headers) => {
      const block = encodeHeaderBlock(Object.entries(headers));
      assert.deepEqual(toRecord(new HpackDecoder().decode(block)!), { ...headers });
    }),
  );
});

test('bytes of any kind are headers or a fault, never something else', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 5 }), (blocks) => {
      const decoder = new HpackDecoder();
      for (const block of blocks)
        try {
          decoder.decode(Buffer.from(block));
        } catch (error) {
          assert.ok(error instanceof HpackError);
          return;
        }
    }),
    { numRuns: 2000 },
  );
});

test('large strings in Huffman code leave no garbage outside the heap', () => {
  // The field "a", whose value is 153,600 times "0", a character with the shortest code: five bits.
  const block = Buffer.concat([Buffer.from('000161ff81ed05', 'hex'), Buffer.alloc(96_000)]);
  const decoder = new HpackDecoder();
  decoder.decode(block);
  const before = process.memoryUsage().arrayBuffers;
  let most = before;
  for (let index = 0; index < 500; index++) {
    assert.equal(decoder.decode(block), undefined);
    most = Math.max(most, process.memoryUsage().arrayBuffers);
  }
  assert.ok(most - before < 1_000_000, String(most - before));
});
