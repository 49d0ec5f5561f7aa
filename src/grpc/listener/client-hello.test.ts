import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { recordHello } from '../../../test/support/network/tls-records.ts';
import { ClientHello } from './client-hello.ts';

const hello = await recordHello();

/** The same message, split into records of this many bytes. */
function cut(bytes: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += bytes) {
    const part = message.subarray(at, at + bytes);
    records.push(Buffer.of(22, 3, 1, part.length >> 8, part.length & 255), part);
  }
  return Buffer.concat(records);
}

for (const [how, bytes] of [
  ['one record', hello],
  ['records of 100 bytes', cut(100)],
  ['records of a byte', cut(1)],
] as const)
  test(`a hello in ${how} is whole with its last byte`, () => {
    const reader = new ClientHello();
    for (let at = 0; at < bytes.length - 1; at++) assert.equal(reader.add(bytes.subarray(at, at + 1)), 'more');
    assert.equal(reader.add(bytes.subarray(-1)), 'whole');
    assert.deepEqual(reader.bytes, bytes);
  });

test('what is no hello is refused', () => {
  assert.equal(new ClientHello().add(Buffer.from('GET / HTTP/1.1\r\n')), 'refuse');
  const alert = Buffer.of(21, 3, 1, 0, 2, 1, 0);
  assert.equal(new ClientHello().add(Buffer.concat([cut(100).subarray(0, 105), alert])), 'refuse');
});

test('a hello that does not end is refused once it has 16 KiB', () => {
  const endless = new ClientHello();
  const head = Buffer.of(22, 3, 1, 0x3f, 0xff, 1, 1, 0, 0);
  assert.equal(endless.add(head), 'more');
  assert.equal(endless.add(Buffer.alloc(16_384 - head.length - 1, 22)), 'more');
  assert.equal(endless.add(Buffer.of(22)), 'refuse');
});

test('a message that is whole is waited for to the end of its record, which OpenSSL waits for', () => {
  const reader = new ClientHello();
  assert.equal(reader.add(Buffer.of(22, 3, 1, 0, 6, 1, 0, 0, 1, 0)), 'more');
  assert.equal(reader.add(Buffer.of(0)), 'whole');
});

/** Runs the function, and returns how many bytes it copied. */
function countCopied(run: () => void): number {
  const concat = mock.method(Buffer, 'concat');
  run();
  concat.mock.restore();
  return concat.mock.calls.reduce((sum, { result }) => sum + (result?.length ?? 0), 0);
}

test('64 KiB of records of a byte are not copied', () => {
  const record = Buffer.of(22, 3, 1, 0, 1, 255);
  const records = Buffer.alloc(65_536, record);
  assert.equal(
    countCopied(() => assert.equal(new ClientHello().add(records), 'refuse')),
    0,
  );
});

test('16 KiB that come byte by byte are copied some hundred times', () => {
  const endless = new ClientHello();
  endless.add(Buffer.of(22, 3, 1, 0x3f, 0xff, 1, 1, 0, 0));
  const copied = countCopied(() => {
    for (let count = 0; count < 16_000; count++) assert.equal(endless.add(Buffer.of(22)), 'more');
  });
  assert.ok(copied < 300 * 16_384, `${copied} bytes`);
});
