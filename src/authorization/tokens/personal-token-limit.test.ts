import assert from 'node:assert/strict';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { hasCode } from '../../../test/support/store/note-store.ts';
import { Failure } from '../../errors.ts';
import { createUser } from '../accounts/user-store.ts';
import { createPersonalToken, revokePersonalToken } from './personal-token.ts';
import { listPersonalTokens, MAX_PERSONAL_TOKENS } from './personal-token-store.ts';

const DAY_MS = 86_400_000;
const AT_ONCE = 8;

forEachEngine('a person has 200 tokens that have not expired, also when many are made at once', async (store) => {
  const world = createStillWorld();
  const profile = { name: 'Grace', email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, world, { ...profile, login: 'grace' });
  const create = (expiresAtMs?: number) =>
    createPersonalToken(store, world, { userId, name: 'ci', scopes: ['all_user'], expiresAtMs });
  await create(world.nowMs() + DAY_MS);
  for (let count = 1; count < MAX_PERSONAL_TOKENS - 1; count += 1) await create();
  const outcomes = await Promise.allSettled(Array.from({ length: AT_ONCE }, () => create()));
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
  assert.equal(refused.length, AT_ONCE - 1);
  for (const { reason } of refused) {
    assert.ok(hasCode('conflict')(reason));
    assert.match(reason.message, /at most 200 that have not expired; revoke one first/);
  }
  const tokens = await listPersonalTokens(store, userId);
  assert.equal(tokens.length, MAX_PERSONAL_TOKENS);
  await revokePersonalToken(store, world, { userId, tokenId: tokens.find(({ expiresAtMs }) => !expiresAtMs)!.tokenId });
  await create();
  await assert.rejects(create(), hasCode('conflict'));
  world.moveMs(2 * DAY_MS);
  await create();
  const other = await createUser(store, world, { ...profile, login: 'linus' });
  const form = { userId: other.id, name: 'ci', scopes: ['all_user'] as const, expiresAtMs: undefined };
  await createPersonalToken(store, world, form);
});

forEachEngine('a check of the repositories that fails leaves no token whose text is lost', async (store) => {
  const world = createStillWorld();
  const profile = { name: 'Grace', email: null, isAdmin: false, passwordHash: null };
  const { id: userId } = await createUser(store, world, { ...profile, login: 'grace' });
  const form = { userId, name: 'ci', scopes: ['all_hook'] as const, expiresAtMs: undefined };
  const findUnknownRepositories = () => Promise.reject(new Failure('unavailable', 'the database is away'));
  const making = createPersonalToken(store, world, { ...form, repositories: ['grace/doors'], findUnknownRepositories });
  await assert.rejects(making, hasCode('unavailable'));
  assert.deepEqual(await listPersonalTokens(store, userId), []);
});
