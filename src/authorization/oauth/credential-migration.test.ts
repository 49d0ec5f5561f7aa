import assert from 'node:assert/strict';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { credentialOrigins } from '../../database/migrations/0021-credential-origins.ts';
import { migrations } from '../../database/migrations/list.ts';
import { statement } from '../../database/store.ts';

const insertOldFamilySql = statement(
  'test-insert-old-family',
  `INSERT INTO token_families (family_id, client_id, user_id, scope, auth_time_ms, created_at_ms, expires_at_ms)
   VALUES ($1, 'app', 'ada', 'all_user', $2, $2, $3)`,
);
const insertOldUserSql = statement(
  'test-insert-old-user',
  `INSERT INTO users (id, login, login_key, name, is_admin, password_changed_at_ms, created_at_ms)
   VALUES ('ada', 'ada', 'ada', 'Ada', 0, 100, 1)`,
);
const liveFamiliesSql = statement<{ family_id: string }>(
  'test-live-families',
  'SELECT family_id FROM token_families WHERE revoked_at_ms IS NULL',
);

forEachEngine(
  'families that a password change had ended stay dead in a database from before',
  async (store, { openAnother }) => {
    await store.write(insertOldUserSql);
    for (const [familyId, createdAtMs] of [
      ['before', 99],
      ['after', 101],
    ] as const)
      await store.write(insertOldFamilySql, [familyId, createdAtMs, 1_000_000]);
    const migrated = await openAnother({ migrations });
    assert.deepEqual(await migrated.read(liveFamiliesSql), [{ family_id: 'after' }]);
  },
  { migrations: migrations.filter(({ id }) => id !== credentialOrigins.id) },
);
