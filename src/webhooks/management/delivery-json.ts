/** Writes deliveries and attempts as JSON for API, console and commands. */
import { z } from '@hono/zod-openapi';
import type { AttemptDetail } from '../delivery/queue/attempt-record.ts';
import { decodeText } from '../delivery/queue/attempt-record.ts';
import type { ListedDelivery, LoggedAttempt, LoggedDelivery } from '../delivery/queue/delivery-log-store.ts';
import { DELIVERY_STATES } from '../delivery/schedule/delivery.ts';
import { EVENT_KINDS } from '../events/event-kind.ts';
import type { HookHold } from '../hooks/hook-status-store.ts';
import { toOffsetTime } from '../parameters/json-body.ts';

export const deliveryJson = z
  .object({
    id: z.int(),
    hook_id: z.int(),
    event_id: z.int(),
    uuid: z.string().openapi({ description: 'As the receiver sees it, at every attempt.' }),
    event: z.enum(EVENT_KINDS as [string, ...string[]]),
    subject: z.string().nullable().openapi({
      description:
        'What the event is about: a branch, a tag, `#` and the number of an issue or merge request, or a commit. Null in deliveries of an older version.',
    }),
    state: z.enum(DELIVERY_STATES),
    attempts: z.int(),
    status_code: z
      .int()
      .openapi({ description: 'Of the last attempt; 0 without an answer, and before the first attempt.' }),
    created_at: z.string(),
    attempted_at: z.string().nullable(),
    next_attempt_at: z.string().nullable().openapi({
      description:
        'The earliest time of the next attempt; now when the delivery only waits for its turn. Null without a next attempt.',
    }),
    waits_for: z.enum(['turn', 'schedule', 'pause']).nullable().openapi({
      description:
        'What a pending delivery waits for: its turn, its own schedule of attempts, or the end of the pause of its webhook (see paused_reason there).',
    }),
  })
  .openapi('Delivery');

/** A delivery with its last attempt. */
export const listedDeliveryJson = deliveryJson
  .extend({
    duration_ms: z.number().nullable().openapi({ description: 'Of the last attempt; null before the first.' }),
    reason: z.string().nullable().openapi({ description: 'Why the last attempt had no answer.' }),
  })
  .openapi('ListedDelivery');

const headersJson = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

export const attemptJson = z
  .object({
    attempt: z.int(),
    started_at: z.string(),
    outcome: z.enum(['accepted', 'refused', 'gone', 'unreachable', 'blocked']),
    status_code: z.int(),
    reason: z.string().nullable().openapi({ description: 'Why there was no answer.' }),
    remote_address: z.string().nullable(),
    request_headers: headersJson.openapi({ description: 'Signatures and passwords are redacted.' }),
    response_headers: headersJson,
    response_body: z.string().openapi({ description: 'The first 8 KiB.' }),
    timings_ms: z.object({
      dns: z.number().nullable(),
      connect: z.number().nullable().openapi({ description: 'Null on a connection that was kept.' }),
      tls: z.number().nullable(),
      firstByte: z.number().nullable(),
      total: z.number(),
    }),
  })
  .openapi('DeliveryAttempt');

export const deliveryDetailJson = listedDeliveryJson
  .extend({
    request_body: z.string().openapi({
      description:
        'The body as it is stored, as text. Every attempt sends these bytes; the profile gitee adds password, sign and timestamp to them.',
    }),
    attempt_log: z.array(attemptJson),
  })
  .openapi('DeliveryDetail');

/** Pending deliveries of a held hook queue are shown as held. */
export function toDeliveryJson(delivery: LoggedDelivery, hold: HookHold, nowMs: number): z.output<typeof deliveryJson> {
  return {
    id: delivery.id,
    hook_id: delivery.hook_id,
    event_id: delivery.event_id,
    uuid: delivery.uuid,
    event: delivery.event_kind,
    subject: delivery.subject,
    state: delivery.state === 'pending' && hold.isHeld ? 'held' : delivery.state,
    attempts: delivery.attempts,
    status_code: delivery.status,
    created_at: toOffsetTime(delivery.created_at_ms),
    attempted_at: delivery.attempted_at_ms === null ? null : toOffsetTime(delivery.attempted_at_ms),
    ...describeNextAttempt(delivery, hold, nowMs),
  };
}

export function toListedDeliveryJson(
  delivery: ListedDelivery,
  hold: HookHold,
  nowMs: number,
): z.output<typeof listedDeliveryJson> {
  const detail = delivery.detail === null ? undefined : (JSON.parse(delivery.detail) as AttemptDetail);
  return {
    ...toDeliveryJson(delivery, hold, nowMs),
    duration_ms: detail?.timings_ms.total ?? null,
    reason: delivery.reason,
  };
}

function describeNextAttempt({ state, due_at_ms: dueAtMs }: LoggedDelivery, hold: HookHold, nowMs: number) {
  if (state !== 'pending' || hold.isHeld) return { next_attempt_at: null, waits_for: null };
  const pausedUntilMs = hold.pause?.untilMs ?? 0;
  if (pausedUntilMs > Math.max(dueAtMs, nowMs))
    return { next_attempt_at: toOffsetTime(pausedUntilMs), waits_for: 'pause' as const };
  if (dueAtMs > nowMs) return { next_attempt_at: toOffsetTime(dueAtMs), waits_for: 'schedule' as const };
  return { next_attempt_at: toOffsetTime(nowMs), waits_for: 'turn' as const };
}

export function toAttemptJson(attempt: LoggedAttempt): z.output<typeof attemptJson> {
  const detail = JSON.parse(attempt.detail) as AttemptDetail;
  return {
    attempt: attempt.attempt,
    started_at: toOffsetTime(attempt.started_at_ms),
    outcome: attempt.outcome as z.output<typeof attemptJson>['outcome'],
    status_code: attempt.status,
    reason: attempt.reason,
    remote_address: attempt.remote_address,
    request_headers: detail.request_headers,
    response_headers: detail.response_headers as Record<string, string | string[]>,
    response_body: attempt.response_body === null ? '' : decodeText(attempt.response_body),
    timings_ms: detail.timings_ms,
  };
}
