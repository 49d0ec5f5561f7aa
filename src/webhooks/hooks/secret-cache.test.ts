import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { realWorld } from '../../world.ts';
import { decryptSecrets, type EncryptedSecrets, encryptChange, type HookSecrets, hookAssociatedData } from './hook.ts';
import { createSecretCache } from './secret-cache.ts';

const cipher = createSecretCipher([new Uint8Array(32).fill(3)], realWorld);

const NOW = 5000;
const DAY_MS = 24 * 3600 * 1000;

function encrypt(secret: string): EncryptedSecrets {
  return { secret: cipher.encrypt(secret, hookAssociatedData(1)), previous_secret: null, previous_until_ms: null };
}

/** The secrets in a hook's row after these changes, an hour apart. */
function change(from: string, ...keys: string[]): EncryptedSecrets {
  return keys.reduce((encrypted, key, index) => {
    const nowMs = NOW + index * 3_600_000;
    return encryptChange(cipher, 1, decryptSecrets(cipher, 1, encrypted, nowMs), { secret: key, nowMs });
  }, encrypt(from));
}

const previousOf = ({ previous }: HookSecrets) => previous.map(({ secret }) => secret.toString());

test('an unchanged ciphertext is decrypted once, a changed one again', () => {
  const read = createSecretCache(cipher);
  const encrypted = encrypt('one');
  const first = read(1, encrypted, 0);
  assert.equal(first.current?.toString(), 'one');
  assert.equal(read(1, { ...encrypted, secret: Uint8Array.from(encrypted.secret!) }, 0), first);
  assert.equal(read(1, encrypt('two'), 0).current?.toString(), 'two');
  assert.equal(read(1, { secret: null, previous_secret: null, previous_until_ms: null }, 0).current, null);
});

test('each former key ends a day after its own change, and until then the ciphertexts are decrypted once', () => {
  const read = createSecretCache(cipher);
  const encrypted = change('one', 'two', 'three');
  const both = read(1, encrypted, NOW + 3_600_000);
  assert.deepEqual(previousOf(both), ['two', 'one']);
  assert.equal(read(1, encrypted, NOW + DAY_MS - 1), both);
  const one = read(1, encrypted, NOW + DAY_MS);
  assert.deepEqual(previousOf(one), ['two']);
  assert.equal(read(1, encrypted, NOW + DAY_MS + 3_599_999), one);
  const none = read(1, encrypted, NOW + DAY_MS + 3_600_000);
  assert.deepEqual(previousOf(none), []);
  assert.equal(read(1, encrypted, NOW + 2 * DAY_MS), none);
});

test('a key that comes back is not a former one, and no key is kept twice', () => {
  const decrypt = (encrypted: EncryptedSecrets) => decryptSecrets(cipher, 1, encrypted, NOW + 4 * 3_600_000);
  assert.deepEqual(previousOf(decrypt(change('one', 'two', 'one'))), ['two']);
  assert.deepEqual(previousOf(decrypt(change('one', 'two', 'one', 'two', 'three'))), ['two', 'one']);
  assert.deepEqual(previousOf(decrypt(change('one', '', 'two'))), ['one']);
});

test('nine former keys are kept at most, the latest', () => {
  const keys = Array.from({ length: 12 }, (_, index) => `key ${index}`);
  const encrypted = change('first', ...keys);
  const former = previousOf(decryptSecrets(cipher, 1, encrypted, NOW + 12 * 3_600_000));
  assert.deepEqual(former, keys.slice(2, 11).reverse());
});

test('a former key that an earlier version encrypted as it is ends at its time', () => {
  const encrypted = {
    ...encrypt('new'),
    previous_secret: cipher.encrypt('["old"]', hookAssociatedData(1)),
    previous_until_ms: 1000,
  };
  assert.deepEqual(previousOf(decryptSecrets(cipher, 1, encrypted, 999)), ['["old"]']);
  assert.deepEqual(previousOf(decryptSecrets(cipher, 1, encrypted, 1000)), []);
});
