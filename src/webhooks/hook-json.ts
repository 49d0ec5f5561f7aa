import { z } from '@hono/zod-openapi';
import type { Vault } from '../vault/vault.ts';
import { openSecrets, PROFILE_NAMES } from './hook.ts';
import type { StoredHook } from './hook-store.ts';
import { toOffsetTime } from './profiles/json-body.ts';

/** The contract's fields, and behind them our own. */
export const hookJson = z
  .object({
    id: z.int(),
    url: z.string(),
    password: z.string(),
    result: z.string().nullable().openapi({ description: 'Body of the last answer, or why there was none.' }),
    project_id: z.int(),
    result_code: z.int().openapi({ description: 'HTTP status of the last answer; 0 when there was none.' }),
    push_events: z.boolean(),
    tag_push_events: z.boolean(),
    issues_events: z.boolean(),
    note_events: z.boolean(),
    merge_requests_events: z.boolean(),
    created_at: z.string(),
    encryption_type: z.int(),
    profile: z.enum(PROFILE_NAMES),
    active: z.boolean(),
    disabled_at: z.string().nullable(),
    disabled_reason: z.string().nullable(),
  })
  .openapi('Hook');

export const updatedHookJson = hookJson.omit({ id: true }).openapi('UpdatedHook');

export function toHookJson({ hook, sealed }: StoredHook, vault: Vault, nowMs: number): z.output<typeof hookJson> {
  return {
    id: hook.id,
    url: hook.url,
    password: openSecrets(vault, hook.id, sealed, nowMs).current?.toString('utf8') ?? '',
    result: hook.result,
    project_id: hook.repositoryId,
    result_code: hook.resultCode,
    push_events: hook.events.push,
    tag_push_events: hook.events.tag_push,
    issues_events: hook.events.issue,
    note_events: hook.events.note,
    merge_requests_events: hook.events.merge_request,
    created_at: toOffsetTime(hook.createdAtMs),
    encryption_type: hook.encryptionType,
    profile: hook.profile,
    active: hook.disabledAtMs === null,
    disabled_at: hook.disabledAtMs === null ? null : toOffsetTime(hook.disabledAtMs),
    disabled_reason: hook.disabledReason,
  };
}
