/** Counts the webhook tests of each person by hour. */
import { type Store, statement } from '../../database/store.ts';
import { deleteOldSql, repeatBatches, type SweepContext } from '../../database/sweep.ts';

const useTestSql = statement<{ used: number }>(
  'use-hook-test',
  `INSERT INTO hook_tests (user_id, hour, used) VALUES ($1, $2, 1)
   ON CONFLICT (user_id, hour) DO UPDATE SET used = hook_tests.used + 1 WHERE hook_tests.used < $3 RETURNING used`,
);
const forgetTestsSql = deleteOldSql({ table: 'hook_tests', key: 'user_id, hour', time: 'hour' });

/** Counts a test. False if this user has reached the limit for this hour. */
export async function takeHookTest(
  store: Store,
  { userId, hour, maximum }: { readonly userId: string; readonly hour: number; readonly maximum: number },
): Promise<boolean> {
  return (await store.write(useTestSql, [userId, hour, maximum])).length > 0;
}

export async function forgetHookTestsBefore(store: Store, hour: number, sweeping: SweepContext): Promise<number> {
  return await repeatBatches(sweeping, async (limit) => (await store.write(forgetTestsSql, [hour - 1, limit])).length);
}
