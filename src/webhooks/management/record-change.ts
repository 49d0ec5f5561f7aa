/** Records changes of repositories and webhooks in the audit log: who changed which fields, never a secret. */
import type { BoundStatement } from '../../database/store.ts';
import type { AuditChange, ChangeKind, RecordedChange } from '../../operations/audit-change.ts';
import type { Actor } from '../../operations/operation.ts';
import { EVENT_KINDS, FLAG_OF } from '../events/event-kind.ts';
import type { ChangeStatements, HookChange } from '../hooks/hook-change-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';

interface Recording {
  readonly auditChange: AuditChange;
}

interface OfRepository {
  readonly repository: Repository;
  readonly actor: Actor;
  readonly nowMs: number;
  readonly details?: RecordedChange['details'];
}

/** The statement that records a change of a repository. */
export function recordRepositoryChange(
  { auditChange }: Recording,
  kind: ChangeKind,
  { repository, actor, nowMs, details }: OfRepository,
): BoundStatement {
  return auditChange({ kind, actor, details: { repository: fullNameOf(repository), ...details } }, nowMs);
}

/** The statement that records a change of one webhook. */
export function recordHookChange(
  recording: Recording,
  kind: ChangeKind,
  { id, details, ...place }: OfRepository & { readonly id: number },
): BoundStatement {
  return recordRepositoryChange(recording, kind, { ...place, details: { hook: id, ...details } });
}

interface ChangedHook {
  readonly repository: Repository;
  readonly stored: StoredHook;
  readonly actor: Actor;
}

/** The statements that record a change of a hook. `switchRecords` apply only if the hook is switched on or off. */
type HookRecords = Pick<ChangeStatements, 'records' | 'switchRecords'>;

/** Lists one record for each kind of change. */
export function listHookRecords(
  recording: Recording,
  { repository, stored, actor }: ChangedHook,
  change: HookChange,
): HookRecords {
  const place = { repository, actor, id: stored.hook.id, nowMs: change.nowMs };
  const fields = listChangedFields(change);
  const switched = change.switch === 'on' ? 'hook_enabled' : 'hook_disabled';
  return {
    records: [
      ...(fields.length > 0
        ? [recordHookChange(recording, 'hook_changed', { ...place, details: { fields: fields.join(' ') } })]
        : []),
      ...(change.secret === undefined ? [] : [recordHookChange(recording, 'hook_key_changed', place)]),
    ],
    switchRecords: change.switch === undefined ? [] : [recordHookChange(recording, switched, place)],
  };
}

function listChangedFields({ url, encryptionType, profile, events }: HookChange): string[] {
  return [
    ...(url === undefined ? [] : ['url']),
    ...(encryptionType === undefined ? [] : ['encryption_type']),
    ...(profile === undefined ? [] : ['profile']),
    ...EVENT_KINDS.filter((kind) => events[kind] !== undefined).map((kind) => FLAG_OF[kind]),
  ];
}
