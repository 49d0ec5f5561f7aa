import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realWorld } from '../../world.ts';
import { createSecret, isSecretOf } from './secret-text.ts';

test('a secret carries its kind and a checksum, so that a typing error is refused without asking the store', () => {
  for (const kind of ['access', 'refresh', 'personal', 'code', 'device', 'client'] as const) {
    const secret = createSecret(kind, realWorld);
    assert.ok(isSecretOf(kind, secret));
    for (const other of ['access', 'refresh', 'personal', 'code', 'device', 'client'] as const)
      assert.equal(isSecretOf(other, secret), other === kind);
    const flipped = secret.slice(0, 20) + (secret[20] === 'a' ? 'b' : 'a') + secret.slice(21);
    assert.equal(isSecretOf(kind, flipped), false);
  }
});
