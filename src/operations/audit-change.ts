/** Declares the changes that areas other than authorization record in its audit log. */
import type { BoundStatement } from '../database/store.ts';
import type { Actor } from './operation.ts';

export type ChangeKind =
  | 'model_promoted'
  | 'model_rolled_back'
  | 'model_imported'
  | 'repository_created'
  | 'repository_deleted'
  | 'hook_created'
  | 'hook_changed'
  | 'hook_key_changed'
  | 'hook_enabled'
  | 'hook_disabled'
  | 'hook_deleted'
  | 'bridge_changed'
  | 'bridge_deleted';

export interface RecordedChange {
  readonly kind: ChangeKind;
  readonly actor: Actor;
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

/** The statement that records a change. It commits with the change. */
export type AuditChange = (change: RecordedChange, nowMs: number) => BoundStatement;
