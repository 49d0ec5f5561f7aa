/** Lists webhooks of all repositories, for administrators. */
import { type Store, statement } from '../../database/store.ts';
import { HOOK_COLUMNS, type HookRow, type StoredHook, toHook } from './hook-store.ts';

const hooksAfterSql = statement<HookRow>(
  'hooks-after',
  `SELECT ${HOOK_COLUMNS} FROM hooks WHERE id > $1 AND ($2 = 0 OR repository_id = $2)
     AND ($3 = 'any' OR ($3 = 'off') = (disabled_at_ms IS NOT NULL)) ORDER BY id LIMIT $4`,
);

export interface HooksQuery {
  readonly afterId: number;
  /** Undefined: of all repositories. */
  readonly repositoryId: number | undefined;
  readonly state: 'on' | 'off' | 'any';
  readonly limit: number;
}

/** Lists all webhooks in the order of their ids. */
export async function listAllHooks(
  store: Store,
  { afterId, repositoryId, state, limit }: HooksQuery,
): Promise<StoredHook[]> {
  const rows = await store.read(hooksAfterSql, [afterId, repositoryId ?? 0, state, limit]);
  return rows.map((row) => ({ hook: toHook(row), encrypted: row }));
}
