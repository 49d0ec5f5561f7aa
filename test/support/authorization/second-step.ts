import { type Store, statement } from '../../../src/database/store.ts';

const giveSecondStepSql = statement(
  'test-give-second-step',
  `INSERT INTO totp_secrets (user_id, seed, confirmed_at_ms, last_step)
   VALUES ((SELECT id FROM users WHERE login = $1), $2, 1, 0)
   ON CONFLICT (user_id) DO NOTHING`,
);

/** Turns on a second step whose digits no one knows. */
export async function giveSecondStep(store: Store, login: string): Promise<void> {
  await store.write(giveSecondStepSql, [login, Uint8Array.of(1)]);
}
