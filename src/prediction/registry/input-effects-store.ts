/** Stores effects of inputs, computed once an hour for each version. */
import { type Store, statement } from '../../database/store.ts';
import type { InputEffects } from './input-effects.ts';

const findEffectsSql = statement<{ made_at_ms: number; content: string }>(
  'input-effects-find',
  'SELECT made_at_ms, content FROM input_effects WHERE target_model = $1 AND version = $2 AND made_at_ms BETWEEN $3 AND $4',
);
// If two processes compute at the same time, the last to write replaces the other result.
const keepEffectsSql = statement(
  'input-effects-keep',
  `INSERT INTO input_effects (target_model, version, made_at_ms, content) VALUES ($1, $2, $3, $4)
   ON CONFLICT (target_model) DO UPDATE SET
     version = excluded.version, made_at_ms = excluded.made_at_ms, content = excluded.content`,
);

export interface EffectsOf {
  readonly targetModel: string;
  readonly version: number;
}

export interface KeptEffects extends InputEffects {
  readonly version: number;
  readonly madeAtMs: number;
}

/** Returns undefined unless they were computed between the two times; a time in the future comes from a wrong clock. */
export async function findInputEffects(
  store: Store,
  { targetModel, version }: EffectsOf,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
): Promise<KeptEffects | undefined> {
  const [row] = await store.read(findEffectsSql, [targetModel, version, fromMs, untilMs]);
  return row && { ...(JSON.parse(row.content) as InputEffects), version, madeAtMs: row.made_at_ms };
}

export async function keepInputEffects(
  store: Store,
  { targetModel, version }: EffectsOf,
  { madeAtMs, ...effects }: InputEffects & { readonly madeAtMs: number },
): Promise<void> {
  await store.write(keepEffectsSql, [targetModel, version, madeAtMs, JSON.stringify(effects)]);
}
