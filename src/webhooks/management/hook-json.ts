/** Writes a webhook as JSON: GitCode's fields, then those that only this service has. */
import { z } from '@hono/zod-openapi';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import { PAUSE_REASONS, type Pause } from '../delivery/schedule/pause-reason.ts';
import { decryptSecrets, PROFILE_NAMES } from '../hooks/hook.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { toOffsetTime } from '../parameters/json-body.ts';

export const hookJson = z
  .object({
    id: z.int(),
    url: z.string(),
    password: z.string(),
    result: z.string().nullable().openapi({ description: 'Body of the last answer, or the reason why it is missing.' }),
    project_id: z.int(),
    result_code: z.int().openapi({ description: 'HTTP status of the last answer; 0 without an answer.' }),
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
    paused_since: z.string().nullable().openapi({
      description:
        'Since when nothing is sent for a while, because of paused_reason. An accepted test ends the pause for all that waits.',
    }),
    paused_until: z.string().nullable().openapi({ description: 'When the pause ends and a probe is sent.' }),
    paused_reason: z.enum(PAUSE_REASONS).nullable().openapi({
      description:
        'failures: most of the last attempts failed; no_connection: the server cannot be connected to; retry_after: the receiver answered 429 and asked to wait.',
    }),
  })
  .openapi('Hook');

export const updatedHookJson = hookJson.omit({ id: true }).openapi('UpdatedHook');

export interface HookJsonContext {
  readonly cipher: SecretCipher;
  readonly nowMs: number;
  /** The pause of the hook queue; undefined without one. */
  readonly pause: Pause | undefined;
}

export function toHookJson({ hook, encrypted }: StoredHook, context: HookJsonContext): z.output<typeof hookJson> {
  const { cipher, nowMs, pause } = context;
  return {
    id: hook.id,
    url: hook.url,
    password: decryptSecrets(cipher, hook.id, encrypted, nowMs).current?.toString('utf8') ?? '',
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
    paused_since: pause === undefined ? null : toOffsetTime(pause.sinceMs),
    paused_until: pause === undefined ? null : toOffsetTime(pause.untilMs),
    paused_reason: pause?.reason ?? null,
  };
}
