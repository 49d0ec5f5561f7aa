import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { realWorld } from '../world.ts';
import { createVault } from './vault.ts';

const first = randomBytes(32);
const second = randomBytes(32);
const vault = createVault([first], realWorld);

test('open() returns what was sealed for the same row', () => {
  assert.equal(vault.open(vault.seal('s3cret', 'hook:1'), 'hook:1').toString(), 's3cret');
});

test('open() refuses a box of another row', () => {
  assert.throws(() => vault.open(vault.seal('s3cret', 'hook:1'), 'hook:2'), /changed or moved/);
});

test('open() refuses a changed box', () => {
  const box = Buffer.from(vault.seal('s3cret', 'hook:1'));
  box[box.length - 1]! ^= 1;
  assert.throws(() => vault.open(box, 'hook:1'), /changed or moved/);
});

test('open() still opens boxes of an older key, and refuses those of an unknown one', () => {
  const rotated = createVault([second, first], realWorld);
  const old = vault.seal('s3cret', 'hook:1');
  assert.equal(rotated.open(old, 'hook:1').toString(), 's3cret');
  assert.throws(() => vault.open(rotated.seal('new', 'hook:1'), 'hook:1'), /its key is not here/);
});

test('seal() never makes the same box twice', () => {
  assert.notDeepEqual(vault.seal('s3cret', 'hook:1'), vault.seal('s3cret', 'hook:1'));
});
