/** Stores changes of a webhook, and records that it was switched on or off only if that changed. */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type SqlValue,
  type Store,
  statement,
} from '../../database/store.ts';
import type { EventKind } from '../events/event-kind.ts';
import type { EncryptedSecrets, EncryptionType, ProfileName } from './hook.ts';
import {
  first,
  HOOK_COLUMNS,
  type HookRow,
  ignoreStale,
  refuseStale,
  type StoredHook,
  toFlag,
  type UpdateStatements,
} from './hook-store.ts';
import { BY_OWNER } from './troubled-hooks-store.ts';

/** Fields that change; undefined fields stay as they are. */
export interface HookChange {
  readonly url: string | undefined;
  readonly encryptionType: EncryptionType | undefined;
  readonly profile: ProfileName | undefined;
  readonly events: Readonly<Partial<Record<EventKind, boolean>>>;
  readonly secret: EncryptedSecrets | undefined;
  /** The ciphertexts on which the change was based. If the row has others by now, nothing changes. Undefined: any are accepted. */
  readonly expected: EncryptedSecrets | undefined;
  readonly switch: 'on' | 'off' | undefined;
  readonly nowMs: number;
}

// Locks the row and reads whether the hook is on: the service may have disabled it since it was read.
const lockHookSql = statement<Pick<HookRow, 'disabled_at_ms'>>(
  'lock-hook',
  'UPDATE hooks SET url = url WHERE id = $1 RETURNING disabled_at_ms',
);
// $10 is 1 if the secret changes; a null in $11 removes it. The hook changes only if its secrets are $17 and $18: of two concurrent
// changes the second would lose the key of the first. $19 means no secret, and a null in $17 any secret. $14: 0 leaves the hook on or
// off, 1 switches it on, 2 off. The last response belongs to the URL, so it is cleared when the URL changes.
const updateHookSql = statement<HookRow>(
  'update-hook',
  `UPDATE hooks SET url = COALESCE($2, url), encryption_type = COALESCE($3, encryption_type), profile = COALESCE($4, profile),
     result = CASE WHEN COALESCE($2, url) = url THEN result ELSE NULL END,
     result_code = CASE WHEN COALESCE($2, url) = url THEN result_code ELSE 0 END,
     push_events = COALESCE($5, push_events), tag_push_events = COALESCE($6, tag_push_events),
     issues_events = COALESCE($7, issues_events), note_events = COALESCE($8, note_events),
     merge_requests_events = COALESCE($9, merge_requests_events),
     previous_secret = CASE WHEN $10 = 1 THEN $16 ELSE previous_secret END,
     previous_until_ms = CASE WHEN $10 = 1 THEN $12 ELSE previous_until_ms END,
     secret = CASE WHEN $10 = 1 THEN $11 ELSE secret END, updated_at_ms = $13,
     disabled_at_ms = CASE WHEN $14 = 1 THEN NULL WHEN $14 = 2 THEN COALESCE(disabled_at_ms, $13) ELSE disabled_at_ms END,
     disabled_reason = CASE WHEN $14 = 1 THEN NULL WHEN $14 = 2 THEN COALESCE(disabled_reason, $15) ELSE disabled_reason END
   WHERE id = $1 AND ((COALESCE(secret, $19) = $17 AND COALESCE(previous_secret, $19) = $18) OR $17 IS NULL)
   RETURNING ${HOOK_COLUMNS}`,
);

/** Statements of the same transaction, which commit only if the hook is changed. */
export interface ChangeStatements extends UpdateStatements {
  /** Records of a switch, written only if the hook was off and is on now, or was on and is off now. */
  readonly switchRecords: readonly BoundStatement[];
}

interface ChangeInput extends ChangeStatements {
  readonly id: number;
  readonly parameters: readonly SqlValue[];
}

export const updateHookOnce: Procedure<ChangeInput, HookRow[]> = conditionalProcedure(
  import.meta.url,
  'updateHookOnce',
  async (transaction, { id, parameters, ofHookQueue, records, switchRecords }) => {
    // Hook queues before hooks, the order in which every transaction locks them.
    await transaction.runAll(ofHookQueue);
    const [before] = await transaction.run(lockHookSql, [id]);
    const rows = await transaction.run(updateHookSql, parameters);
    if (before === undefined || rows[0] === undefined) throw refuseStale();
    const isSwitched = (before.disabled_at_ms === null) !== (rows[0].disabled_at_ms === null);
    await transaction.runAll(isSwitched ? [...records, ...switchRecords] : records);
    return rows;
  },
);

/** Returns the changed hook; undefined if it was deleted or got another secret meanwhile. */
export async function changeHook(
  store: Store,
  { id, change }: { readonly id: number; readonly change: HookChange },
  statements: ChangeStatements,
): Promise<StoredHook | undefined> {
  const call = store.call(updateHookOnce, { id, parameters: toUpdate(id, change), ...statements });
  return first((await ignoreStale(call)) ?? []);
}

function toUpdate(id: number, change: HookChange): SqlValue[] {
  const { events, secret, expected } = change;
  return [
    id,
    change.url ?? null,
    change.encryptionType ?? null,
    change.profile ?? null,
    toFlagOrNull(events.push),
    toFlagOrNull(events.tag_push),
    toFlagOrNull(events.issue),
    toFlagOrNull(events.note),
    toFlagOrNull(events.merge_request),
    secret === undefined ? 0 : 1,
    secret?.secret ?? null,
    secret?.previous_until_ms ?? null,
    change.nowMs,
    change.switch === undefined ? 0 : SWITCH_NUMBER_OF[change.switch],
    BY_OWNER,
    secret?.previous_secret ?? null,
    expected === undefined ? null : (expected.secret ?? NO_BOX),
    expected?.previous_secret ?? NO_BOX,
    NO_BOX,
  ];
}

/** Means a null secret in a comparison: no ciphertext is empty. */
const NO_BOX = new Uint8Array(0);

const SWITCH_NUMBER_OF = { on: 1, off: 2 } as const;

function toFlagOrNull(value: boolean | undefined): number | null {
  return value === undefined ? null : toFlag(value);
}
