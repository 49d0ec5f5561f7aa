/**
 * Counts tokens that ended because a password, a consent or a person changed, for the metrics. No column marks them as ended:
 * each use checks whether the credential is still valid (credential-validity-store.ts). So the valid ones are counted just
 * before the change that ends them.
 */
import { type Store, statement } from '../../database/store.ts';
import type { World } from '../../world.ts';
import { isStillValid, joinPersonAndConsent } from '../accounts/credential-validity-store.ts';
import type { CountToken, EndReason } from './token-metrics.ts';

const liveFamiliesSql = statement<{ count: number }>(
  'count-live-families',
  `SELECT COUNT(*) AS count FROM token_families f ${joinPersonAndConsent('f')}
   WHERE f.user_id = $1 AND ($2 = '' OR f.client_id = $2) AND f.revoked_at_ms IS NULL AND f.expires_at_ms > $3
     AND ${isStillValid('f')}`,
);
const livePersonalTokensSql = statement<{ count: number }>(
  'count-live-personal-tokens',
  'SELECT COUNT(*) AS count FROM personal_tokens WHERE user_id = $1 AND (expires_at_ms IS NULL OR expires_at_ms > $2)',
);

export interface EndedTokensDependencies {
  readonly store: Store;
  readonly world: World;
  readonly countToken?: CountToken | undefined;
}

export interface Ending {
  readonly reason: EndReason;
  readonly userId: string;
  /** Limits the change to tokens of this application. */
  readonly clientId?: string;
  readonly endsPersonal?: boolean;
}

/** Call this before the change, and call the returned function after the change has committed. */
export async function prepareEndedCount(
  { store, world, countToken }: EndedTokensDependencies,
  { reason, userId, clientId = '', endsPersonal = false }: Ending,
): Promise<() => void> {
  if (countToken === undefined) return () => {};
  const nowMs = world.nowMs();
  const [grants, personal] = await Promise.all([
    store.read(liveFamiliesSql, [userId, clientId, nowMs]),
    endsPersonal ? store.read(livePersonalTokensSql, [userId, nowMs]) : [],
  ]);
  return () => {
    countToken('ended', 'refresh_token', { reason, count: grants[0]?.count ?? 0 });
    countToken('ended', 'personal', { reason, count: personal[0]?.count ?? 0 });
  };
}
