/** How many tests of webhooks each person has made in an hour. */
import { type Store, statement } from '../../database/store.ts';

const useTestSql = statement<{ used: number }>(
  'use-hook-test',
  `INSERT INTO hook_tests (user_id, hour, used) VALUES ($1, $2, 1)
   ON CONFLICT (user_id, hour) DO UPDATE SET used = hook_tests.used + 1 WHERE hook_tests.used < $3 RETURNING used`,
);
const forgetTestsSql = statement('forget-hook-tests', 'DELETE FROM hook_tests WHERE hour < $1');

/** False when this user has used up the tests of this hour. */
export async function takeHookTest(
  store: Store,
  { userId, hour, maximum }: { readonly userId: string; readonly hour: number; readonly maximum: number },
): Promise<boolean> {
  return (await store.write(useTestSql, [userId, hour, maximum])).length > 0;
}

export async function forgetHookTestsBefore(store: Store, hour: number): Promise<void> {
  await store.write(forgetTestsSql, [hour]);
}
