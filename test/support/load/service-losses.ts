/** Compares the calls that a service acknowledged with the rows in the store and the requests at receivers. */
import { type Store, statement } from '../../../src/database/store.ts';

export interface Acknowledged {
  /** The key is the number of the event. */
  readonly acceptedAtMs: ReadonlyMap<number, number>;
  /** For each hook, by the number of the event. */
  readonly receivedAtMs: readonly ReadonlyMap<number, number>[];
  readonly observed: ReadonlySet<number>;
}

const storedObservationsSql = statement<{ number: number }>(
  'test-load-observations',
  'SELECT DISTINCT input_token_length AS number FROM samples',
);
const forkedFamiliesSql = statement<{ family_id: string }>(
  'test-load-forked-families',
  `SELECT family_id FROM refresh_tokens GROUP BY family_id
   HAVING SUM(CASE WHEN rotated_at_ms IS NULL THEN 1 ELSE 0 END) > 1 OR COUNT(*) <> MAX(generation) + 1`,
);
const halfRedeemedCodesSql = statement<{ count: number }>(
  'test-load-half-redeemed-codes',
  `SELECT (SELECT COUNT(*) FROM authorization_codes c LEFT JOIN token_families f ON f.family_id = c.family_id
             WHERE (c.redeemed_at_ms IS NULL) <> (f.family_id IS NULL))
        + (SELECT COUNT(*) FROM token_families f
             WHERE NOT EXISTS (SELECT 1 FROM authorization_codes c WHERE c.family_id = f.family_id)) AS count`,
);

/** Lists what was acknowledged but is missing. */
export async function findLosses(state: Acknowledged, store: Store): Promise<string[]> {
  const losses: string[] = [];
  for (const [hook, received] of state.receivedAtMs.entries())
    for (const number of state.acceptedAtMs.keys())
      if (!received.has(number)) losses.push(`event ${number} did not come to hook ${hook}`);
  const stored = new Set((await store.read(storedObservationsSql)).map(({ number }) => number));
  for (const number of state.observed) if (!stored.has(number)) losses.push(`observation ${number} is not stored`);
  for (const row of await store.read(forkedFamiliesSql)) losses.push(`refresh tokens of ${row.family_id} have forked`);
  const [half] = await store.read(halfRedeemedCodesSql);
  if (half?.count !== 0) losses.push(`${half?.count} codes are redeemed by half`);
  return losses;
}
