import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { createSecretCipher } from '../../encryption/secret-cipher.ts';
import { realWorld, type World } from '../../world.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { sweepEnded } from '../maintenance/retention-store.ts';
import { insertKeyUnlessFresh, listSigningKeys, replaceAllKeys, type StoredKey } from './signing-key-store.ts';
import { createSigningKeys, replaceSigningKeys } from './signing-keys.ts';

const DAY_MS = 86_400_000;
const deleteKeysSql = statement('test-delete-signing-keys', 'DELETE FROM signing_keys');

forEachEngine(
  'the key of before a clock was a year ahead signs again, and is removed when it is due',
  async (store) => {
    let nowMs = Date.UTC(2026, 0, 1);
    const world: World = { ...realWorld, nowMs: () => nowMs };
    const cipher = createSecretCipher([new Uint8Array(32)], world);
    // As in a process that has just started.
    const createKeys = () => createSigningKeys({ store, world, cipher });
    const { kid } = await createKeys().findCurrent();
    nowMs += 365 * DAY_MS;
    await createKeys().ensureFresh();
    nowMs -= 365 * DAY_MS;
    assert.equal((await createKeys().findCurrent()).kid, kid);
    const sweepAfter = async (days: number) =>
      (await sweepEnded(store, { nowMs: nowMs + days * DAY_MS, auditDays: 365 })).signingKeys;
    assert.equal(await sweepAfter(59), 0);
    assert.equal(await sweepAfter(60), 1);
  },
);

forEachEngine(
  'a clock that was a year ahead stops neither the rotation of keys nor a process that went on',
  async (store) => {
    let [nowMs, monotonicMs] = [Date.UTC(2026, 0, 1), 0];
    const world: World = { ...realWorld, nowMs: () => nowMs, monotonicMs: () => monotonicMs };
    const keys = createSigningKeys({ store, world, cipher: createSecretCipher([new Uint8Array(32)], world) });
    const advance = (ms: number) => {
      nowMs += ms;
      monotonicMs += ms;
    };
    const first = await keys.findCurrent();
    nowMs += 365 * DAY_MS;
    advance(60_000);
    const ahead = await keys.findCurrent();
    assert.notEqual(ahead.kid, first.kid);
    nowMs -= 365 * DAY_MS;
    advance(60_000);
    assert.equal((await keys.findCurrent()).kid, first.kid, 'the key of the wrong time is not kept');
    advance(31 * DAY_MS);
    await keys.ensureFresh();
    advance(3_600_000);
    const { kid } = await keys.findCurrent();
    assert.ok(kid !== first.kid && kid !== ahead.kid, 'the next key signs');
    const published = (await keys.listPublic()).map((key) => key.kid);
    for (const each of [first, ahead, { kid }]) assert.ok(published.includes(each.kid));
  },
);

forEachEngine('callers that need a new key at the same time make one', async (store) => {
  const keys = createSigningKeys({
    store,
    world: realWorld,
    cipher: createSecretCipher([new Uint8Array(32)], realWorld),
  });
  const signing = await Promise.all(Array.from({ length: 20 }, () => keys.findCurrent()));
  assert.equal(new Set(signing.map(({ kid }) => kid)).size, 1);
  assert.equal((await keys.listPublic()).length, 1);
});

const createAudit = () => auditStatement({ kind: 'signing_keys_replaced', userId: 'ada' }, realWorld.nowMs());

/** Created in advance, so that the transactions begin together: creating a real key takes 30 to 300 ms. */
function nameKey(kid: string): StoredKey {
  const createdAtMs = realWorld.nowMs();
  return {
    kid,
    publicJwk: '{}',
    encryptedPrivateKey: new Uint8Array(1),
    createdAtMs,
    expiresAtMs: createdAtMs + DAY_MS,
  };
}

forEachEngine(
  'keys that two processes replace at once, beside a rotation, leave the one key that the last of them named',
  async (store, { openAnother }) => {
    const stores = [store, await openAnother()];
    for (let round = 0; round < 10; round += 1) {
      const change = async (place: Store, kid: string): Promise<string> => {
        const key = nameKey(kid);
        if (kid.startsWith('rotated')) await place.call(insertKeyUnlessFresh, { key, nowMs: key.createdAtMs });
        else await place.call(replaceAllKeys, { key, audit: createAudit() });
        return kid;
      };
      const kids = ['new-1', 'rotated-1', 'new-2', 'rotated-2', 'new-3'].map((name) => `${name}-${round}`);
      await store.write(deleteKeysSql);
      await Promise.all(kids.map((kid, index) => change(stores[index % 2]!, kid)));
      const left = (await listSigningKeys(store, realWorld.nowMs())).map(({ kid }) => kid);
      assert.equal(left.length, 1, `round ${round}: ${left.join()}`);
      assert.match(left[0]!, /^new/);
    }
  },
);

forEachEngine('the key that a replacement names is the one that signs', async (store) => {
  const dependencies = { store, world: realWorld, cipher: createSecretCipher([new Uint8Array(32)], realWorld) };
  const keys = createSigningKeys(dependencies);
  const { kid: leaked } = await keys.findCurrent();
  const { kid, replaced } = await replaceSigningKeys(dependencies, createAudit());
  assert.deepEqual(replaced, [leaked]);
  assert.equal((await keys.findCurrent()).kid, kid);
});

forEachEngine(
  'M08 a new key signs after it was published for a while, and the old one stays published',
  async (store) => {
    let nowMs = Date.UTC(2026, 0, 1);
    const world: World = { ...realWorld, nowMs: () => nowMs, monotonicMs: () => nowMs };
    const keys = createSigningKeys({ store, world, cipher: createSecretCipher([new Uint8Array(32)], world) });
    const first = await keys.findCurrent();
    nowMs += 31 * DAY_MS;
    await keys.ensureFresh();
    assert.equal((await keys.listPublic()).length, 2);
    assert.equal((await keys.findCurrent()).kid, first.kid, 'not yet');
    nowMs += 11 * 60_000;
    const second = await keys.findCurrent();
    assert.notEqual(second.kid, first.kid);
    assert.ok((await keys.listPublic()).some((key) => key.kid === first.kid));
    nowMs += 30 * DAY_MS;
    assert.ok(!(await keys.listPublic()).some((key) => key.kid === first.kid));
  },
);
