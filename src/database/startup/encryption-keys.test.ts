import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { realWorld } from '../../world.ts';
import { migrations } from '../migrations/list.ts';
import { checkEncryptionKeys, createEncryptionKeys, readEncryptionKeys } from './encryption-keys.ts';

const world = realWorld;

function withFolder(run: (dataDir: string) => void): void {
  const dataDir = mkdtempSync(join(tmpdir(), 'trivet-test-'));
  try {
    run(dataDir);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

test('createEncryptionKeys() makes one key, for its owner alone, and readEncryptionKeys() the same one ever after', () =>
  withFolder((dataDir) => {
    assert.equal(readEncryptionKeys({ dataDir, configured: undefined, world }), undefined);
    const keys = createEncryptionKeys({ dataDir, configured: undefined, world });
    assert.equal(keys.length, 1);
    assert.equal(keys[0]?.length, 32);
    assert.deepEqual(readEncryptionKeys({ dataDir, configured: undefined, world }), keys);
    assert.equal(statSync(join(dataDir, 'keys')).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(dataDir), ['keys']);
  }));

test('readEncryptionKeys() takes the configured keys and makes no file', () =>
  withFolder((dataDir) => {
    const configured = [new Uint8Array(32).fill(1)];
    assert.equal(readEncryptionKeys({ dataDir, configured, world }), configured);
    assert.deepEqual(readdirSync(dataDir), []);
  }));

test('readEncryptionKeys() reads several lines and refuses what is no key, without showing it', () =>
  withFolder((dataDir) => {
    const line = (byte: number) => `${Buffer.alloc(32, byte).toString('base64')}\n`;
    writeFileSync(join(dataDir, 'keys'), line(1) + line(2));
    assert.deepEqual(
      readEncryptionKeys({ dataDir, configured: undefined, world })?.map((key) => key[0]),
      [1, 2],
    );
    writeFileSync(join(dataDir, 'keys'), 'c2hvcnQ=');
    assert.throws(
      () => readEncryptionKeys({ dataDir, configured: undefined, world }),
      (error: Error) => /must be base64 of 32 bytes/.test(error.message) && !error.message.includes('c2hvcnQ='),
    );
  }));

forEachEngine(
  'a program with another key is refused before it encrypts anything',
  async (store) => {
    const [first, second] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    await checkEncryptionKeys(store, createSecretCipher([first], world));
    await checkEncryptionKeys(store, createSecretCipher([first], world));
    await checkEncryptionKeys(store, createSecretCipher([second, first], world));
    await assert.rejects(checkEncryptionKeys(store, createSecretCipher([second], world)), {
      code: 'invalid',
      message: /encrypted with a key that this program was not given/,
    });
  },
  { migrations },
);

forEachEngine(
  'of two programs that start at once with different keys only one goes on',
  async (store, { openAnother }) => {
    const other = await openAnother();
    const outcomes = await Promise.allSettled([
      checkEncryptionKeys(store, createSecretCipher([new Uint8Array(32).fill(1)], world)),
      checkEncryptionKeys(other, createSecretCipher([new Uint8Array(32).fill(2)], world)),
    ]);
    assert.deepEqual(outcomes.map((outcome) => outcome.status).sort(), ['fulfilled', 'rejected']);
  },
  { migrations },
);
