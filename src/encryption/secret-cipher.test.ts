import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { realWorld } from '../world.ts';
import { createSecretCipher } from './secret-cipher.ts';

const first = randomBytes(32);
const second = randomBytes(32);
const cipher = createSecretCipher([first], realWorld);

test('decrypt() returns what was encrypted for the same row', () => {
  assert.equal(cipher.decrypt(cipher.encrypt('s3cret', 'hook:1'), 'hook:1').toString(), 's3cret');
});

test('decrypt() refuses a ciphertext of another row', () => {
  assert.throws(() => cipher.decrypt(cipher.encrypt('s3cret', 'hook:1'), 'hook:2'), /changed or moved/);
});

test('decrypt() refuses a changed ciphertext', () => {
  const ciphertext = Buffer.from(cipher.encrypt('s3cret', 'hook:1'));
  ciphertext[ciphertext.length - 1]! ^= 1;
  assert.throws(() => cipher.decrypt(ciphertext, 'hook:1'), /changed or moved/);
});

test('decrypt() still reads a ciphertext of an older key, and refuses one of an unknown key', () => {
  const rotated = createSecretCipher([second, first], realWorld);
  const old = cipher.encrypt('s3cret', 'hook:1');
  assert.equal(rotated.decrypt(old, 'hook:1').toString(), 's3cret');
  assert.throws(() => cipher.decrypt(rotated.encrypt('new', 'hook:1'), 'hook:1'), /its key is not here/);
});

test('encrypt() never gives the same ciphertext twice', () => {
  assert.notDeepEqual(cipher.encrypt('s3cret', 'hook:1'), cipher.encrypt('s3cret', 'hook:1'));
});
