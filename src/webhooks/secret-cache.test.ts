import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createVault } from '../vault/vault.ts';
import { realWorld } from '../world.ts';
import { bindingOf } from './hook.ts';
import { createSecretCache } from './secret-cache.ts';

const vault = createVault([new Uint8Array(32).fill(3)], realWorld);

function seal(secret: string, previous?: string) {
  return {
    secret: vault.seal(secret, bindingOf(1)),
    previous_secret: previous === undefined ? null : vault.seal(previous, bindingOf(1)),
    previous_until_ms: previous === undefined ? null : 1000,
  };
}

test('an unchanged box is opened once, a changed one anew', () => {
  const read = createSecretCache(vault);
  const sealed = seal('one');
  const first = read(1, sealed, 0);
  assert.equal(first.current?.toString(), 'one');
  assert.equal(read(1, { ...sealed, secret: Uint8Array.from(sealed.secret) }, 0), first);
  assert.equal(read(1, seal('two'), 0).current?.toString(), 'two');
  assert.equal(read(1, { secret: null, previous_secret: null, previous_until_ms: null }, 0).current, null);
});

test('the former secret ends at its time', () => {
  const read = createSecretCache(vault);
  const sealed = seal('new', 'old');
  assert.equal(read(1, sealed, 999).previous?.toString(), 'old');
  assert.equal(read(1, sealed, 1000).previous, null);
});
