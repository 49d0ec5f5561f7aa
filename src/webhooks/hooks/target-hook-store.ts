/** Finds the hooks that get an event, by their subscriptions. It runs for every event, so it reads only columns that deliveries need. */
import { type Store, statement } from '../../database/store.ts';
import type { EventKind } from '../events/event-kind.ts';
import type { EncryptedSecrets, EncryptionType, Hook, ProfileName } from './hook.ts';

/** The part of a stored hook that a delivery needs. */
export interface TargetHook {
  readonly hook: Pick<Hook, 'id' | 'url' | 'encryptionType' | 'profile' | 'disabledAtMs'>;
  readonly encrypted: EncryptedSecrets;
  /** The generation of the hook's queue (`endpoint_queue`) when it was read; undefined if it was not read. */
  readonly generation?: number;
}

interface TargetHookRow extends EncryptedSecrets {
  readonly id: number;
  readonly url: string;
  readonly encryption_type: number;
  readonly profile: string;
  readonly disabled_at_ms: number | null;
  readonly generation: number;
}

const hooksWantingSql = {
  push: subscribedBy('push_events'),
  tag_push: subscribedBy('tag_push_events'),
  issue: subscribedBy('issues_events'),
  note: subscribedBy('note_events'),
  merge_request: subscribedBy('merge_requests_events'),
} as const satisfies Record<EventKind, unknown>;

function subscribedBy(flag: string) {
  return statement<TargetHookRow>(
    `hooks-subscribed-to-${flag.replaceAll('_', '-')}`,
    `SELECT id, url, encryption_type, profile, secret, previous_secret, previous_until_ms, disabled_at_ms,
       COALESCE((SELECT q.generation FROM endpoint_queue q WHERE q.hook_id = hooks.id), 0) AS generation
     FROM hooks WHERE repository_id = $1 AND ${flag} = 1 ORDER BY id`,
  );
}

/** Lists the hooks that subscribe to this kind, including disabled ones, whose deliveries are held. */
export async function listSubscribedHooks(store: Store, repositoryId: number, kind: EventKind): Promise<TargetHook[]> {
  return (await store.readCached(hooksWantingSql[kind], [repositoryId])).map(toTarget);
}

function toTarget(row: TargetHookRow): TargetHook {
  const { id, url, encryption_type, profile, disabled_at_ms, secret, previous_secret, previous_until_ms } = row;
  const encryptionType: EncryptionType = encryption_type === 1 ? 1 : 0;
  return {
    hook: { id, url, encryptionType, profile: profile as ProfileName, disabledAtMs: disabled_at_ms },
    encrypted: { secret, previous_secret, previous_until_ms },
    generation: row.generation,
  };
}
