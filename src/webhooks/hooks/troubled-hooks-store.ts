/** Lists the webhooks that fail, or that the service has disabled. */
import { type Row, type Store, statement } from '../../database/store.ts';

/** `hook-store.ts` records this reason. */
export const BY_OWNER = 'Switched off by its owner';

interface TroubledRow extends Row {
  readonly id: number;
  readonly url: string;
  readonly owner_id: string;
  readonly owner_login: string;
  readonly path: string;
  readonly disabled_at_ms: number | null;
  readonly disabled_reason: string | null;
  readonly result_code: number;
  readonly failing_since_ms: number | null;
}

const COLUMNS = `h.id, h.url, r.owner_id, r.owner_login, r.path, h.disabled_at_ms, h.disabled_reason, h.result_code,
  q.failing_since_ms`;

const troubledAfterSql = statement<TroubledRow>(
  'troubled-hooks-after',
  `SELECT ${COLUMNS} FROM (SELECT id FROM hooks WHERE disabled_at_ms IS NOT NULL AND id > $1
       UNION SELECT hook_id FROM endpoint_queue WHERE failing_since_ms IS NOT NULL AND hook_id > $1) AS t
     JOIN hooks h ON h.id = t.id JOIN repositories r ON r.id = h.repository_id LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE (h.disabled_at_ms IS NULL AND q.failing_since_ms <= $2)
     OR (h.disabled_at_ms IS NOT NULL AND h.disabled_reason <> $3)
   ORDER BY h.id LIMIT $4`,
);
const hookByIdSql = statement<TroubledRow>(
  'hook-with-repository',
  `SELECT ${COLUMNS} FROM hooks h JOIN repositories r ON r.id = h.repository_id
     LEFT JOIN endpoint_queue q ON q.hook_id = h.id
   WHERE h.id = $1`,
);

export interface WatchedHook {
  readonly id: number;
  readonly url: string;
  readonly ownerId: string;
  readonly ownerLogin: string;
  readonly path: string;
  readonly isDisabled: boolean;
  readonly disabledReason: string | null;
  /** When the hook was disabled, or since when it has failed; undefined if neither. */
  readonly troubledSinceMs: number | undefined;
  /** Whether the receiver accepted the attempt whose response was stored last. */
  readonly isLastAccepted: boolean;
}

const PAGE_SIZE = 500;

/** Lists the webhooks that have failed since `failingUntilMs` or longer. */
export async function listTroubledSince(store: Store, failingUntilMs: number): Promise<WatchedHook[]> {
  const found: WatchedHook[] = [];
  for (let after = 0; ; ) {
    const rows = await store.read(troubledAfterSql, [after, failingUntilMs, BY_OWNER, PAGE_SIZE]);
    found.push(...rows.map(toWatched));
    if (rows.length < PAGE_SIZE) return found;
    after = rows.at(-1)?.id ?? 0;
  }
}

export async function findWatched(store: Store, id: number): Promise<WatchedHook | undefined> {
  const [row] = await store.read(hookByIdSql, [id]);
  return row && toWatched(row);
}

function toWatched(row: TroubledRow): WatchedHook {
  return {
    id: row.id,
    url: row.url,
    ownerId: row.owner_id,
    ownerLogin: row.owner_login,
    path: row.path,
    isDisabled: row.disabled_at_ms !== null,
    disabledReason: row.disabled_reason,
    troubledSinceMs: row.disabled_at_ms ?? row.failing_since_ms ?? undefined,
    isLastAccepted: row.result_code >= 200 && row.result_code < 300,
  };
}
