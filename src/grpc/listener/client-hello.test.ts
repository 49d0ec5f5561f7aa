import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordHello } from '../../../test/support/tls-records.ts';
import { ClientHello } from './client-hello.ts';

const hello = await recordHello();

/** The same message in records of this many bytes. */
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
    for (let at = 0; at < bytes.length - 1; at++) assert.equal(reader.add(bytes.subarray(at, at + 1)), false);
    assert.equal(reader.add(bytes.subarray(-1)), true);
    assert.deepEqual(reader.bytes, bytes);
  });

test('what is no hello is not waited for', () => {
  assert.equal(new ClientHello().add(Buffer.from('GET / HTTP/1.1\r\n')), true);
  const alert = Buffer.of(21, 3, 1, 0, 2, 1, 0);
  assert.equal(new ClientHello().add(Buffer.concat([cut(100).subarray(0, 105), alert])), true);
});

test('a hello that does not end is waited for until it has 16 KiB', () => {
  const endless = new ClientHello();
  const head = Buffer.of(22, 3, 1, 0x3f, 0xff, 1, 1, 0, 0);
  assert.equal(endless.add(head), false);
  assert.equal(endless.add(Buffer.alloc(16_384 - head.length - 1, 22)), false);
  assert.equal(endless.add(Buffer.of(22)), true);
});
