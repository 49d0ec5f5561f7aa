import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createVault } from '../../vault/vault.ts';
import { realWorld } from '../../world.ts';
import { bindingOf, type HookSecrets, openSecrets, type SealedSecrets, sealChange } from './hook.ts';
import { createSecretCache } from './secret-cache.ts';

const vault = createVault([new Uint8Array(32).fill(3)], realWorld);

const NOW = 5000;
const DAY_MS = 24 * 3600 * 1000;

function seal(secret: string): SealedSecrets {
  return { secret: vault.seal(secret, bindingOf(1)), previous_secret: null, previous_until_ms: null };
}

/** What a hook's row has after these changes, an hour apart. */
function change(from: string, ...keys: string[]): SealedSecrets {
  return keys.reduce((sealed, key, index) => {
    const nowMs = NOW + index * 3_600_000;
    return sealChange(vault, 1, openSecrets(vault, 1, sealed, nowMs), { key, nowMs });
  }, seal(from));
}

const formerOf = ({ former }: HookSecrets) => former.map(({ key }) => key.toString());

test('an unchanged box is opened once, a changed box again', () => {
  const read = createSecretCache(vault);
  const sealed = seal('one');
  const first = read(1, sealed, 0);
  assert.equal(first.current?.toString(), 'one');
  assert.equal(read(1, { ...sealed, secret: Uint8Array.from(sealed.secret!) }, 0), first);
  assert.equal(read(1, seal('two'), 0).current?.toString(), 'two');
  assert.equal(read(1, { secret: null, previous_secret: null, previous_until_ms: null }, 0).current, null);
});

test('each former key ends a day after its own change, and until then the boxes are opened once', () => {
  const read = createSecretCache(vault);
  const sealed = change('one', 'two', 'three');
  const both = read(1, sealed, NOW + 3_600_000);
  assert.deepEqual(formerOf(both), ['two', 'one']);
  assert.equal(read(1, sealed, NOW + DAY_MS - 1), both);
  const one = read(1, sealed, NOW + DAY_MS);
  assert.deepEqual(formerOf(one), ['two']);
  assert.equal(read(1, sealed, NOW + DAY_MS + 3_599_999), one);
  const none = read(1, sealed, NOW + DAY_MS + 3_600_000);
  assert.deepEqual(formerOf(none), []);
  assert.equal(read(1, sealed, NOW + 2 * DAY_MS), none);
});

test('a key that comes back is not a former one, and no key is kept twice', () => {
  const open = (sealed: SealedSecrets) => openSecrets(vault, 1, sealed, NOW + 4 * 3_600_000);
  assert.deepEqual(formerOf(open(change('one', 'two', 'one'))), ['two']);
  assert.deepEqual(formerOf(open(change('one', 'two', 'one', 'two', 'three'))), ['two', 'one']);
  assert.deepEqual(formerOf(open(change('one', '', 'two'))), ['one']);
});

test('nine former keys are kept at most, the latest', () => {
  const keys = Array.from({ length: 12 }, (_, index) => `key ${index}`);
  const sealed = change('first', ...keys);
  const former = formerOf(openSecrets(vault, 1, sealed, NOW + 12 * 3_600_000));
  assert.deepEqual(former, keys.slice(2, 11).reverse());
});

test('a former key that an earlier version sealed as it is ends at its time', () => {
  const sealed = { ...seal('new'), previous_secret: vault.seal('["old"]', bindingOf(1)), previous_until_ms: 1000 };
  assert.deepEqual(formerOf(openSecrets(vault, 1, sealed, 999)), ['["old"]']);
  assert.deepEqual(formerOf(openSecrets(vault, 1, sealed, 1000)), []);
});
