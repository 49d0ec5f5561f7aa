/**
 * From an event to its deliveries: the event and one delivery for every hook that wants its kind commit together, before
 * anybody is told that they did. Bodies are rendered here, once; attempts send the stored bytes.
 */
import { createHash } from 'node:crypto';
import { Failure } from '../errors.ts';
import { enqueueSteps } from './delivery-store.ts';
import type { Event } from './event.ts';
import type { Hook } from './hook.ts';
import type { Management } from './management.ts';
import { toOffsetTime } from './profiles/json-body.ts';
import { PROFILES } from './profiles/profiles.ts';
import type { Repository } from './repository.ts';

/** How long a repeated announcement is recognised. */
const KEY_LIFETIME_MS = 24 * 3600 * 1000;
/** A test sends by itself; the workers take over only when that did not end. */
const TEST_GRACE_MS = 30_000;

export interface Announcement {
  readonly repository: Repository;
  readonly event: Event;
  /** Where it came from: `api`, `git`, `cli`, `test` or the name of a bridge. */
  readonly source: string;
  readonly idempotencyKey: string | undefined;
}

/** What the announcer is answered with. */
export interface AnnouncementAnswer {
  readonly id: number;
  readonly kind: string;
  readonly project_id: number;
  readonly created_at: string;
  readonly deliveries: readonly { readonly id: number; readonly hook_id: number; readonly uuid: string }[];
}

/** The same key with the same event answers as the first time and sends nothing; with another event it is refused. */
export async function announce(parts: Management, announcement: Announcement): Promise<AnnouncementAnswer> {
  const hooks = await parts.hooks.listWanting(announcement.repository.id, announcement.event.kind);
  const draft = draftDeliveries(parts, announcement, hooks, undefined);
  const holder = await parts.events.commit(draft.event, draft.key, draft.steps);
  if (holder !== undefined) return repeatAnswer(holder, draft.content, announcement.idempotencyKey ?? '');
  parts.pokeDeliveries(hooks.map((hook) => hook.id));
  return draft.answer;
}

/** One delivery to one hook, whatever it subscribed to; for the caller to send. */
export async function announceTest(parts: Management, announcement: Announcement, hook: Hook): Promise<number> {
  const draft = draftDeliveries(parts, announcement, [hook], parts.world.nowMs() + TEST_GRACE_MS);
  await parts.events.commit(draft.event, undefined, draft.steps);
  return draft.answer.deliveries[0]?.id ?? 0;
}

function draftDeliveries(parts: Management, announcement: Announcement, hooks: readonly Hook[], dueAtMs?: number) {
  const { world } = parts;
  const { repository, event, source, idempotencyKey } = announcement;
  const nowMs = world.nowMs();
  const eventId = world.id();
  const deliveries = hooks.map((hook) => ({ id: world.id(), hook, uuid: world.uuid() }));
  const answer: AnnouncementAnswer = {
    id: eventId,
    kind: event.kind,
    project_id: repository.id,
    created_at: toOffsetTime(nowMs),
    deliveries: deliveries.map(({ id, hook, uuid }) => ({ id, hook_id: hook.id, uuid })),
  };
  const content = JSON.stringify(event);
  const key =
    idempotencyKey === undefined
      ? undefined
      : {
          key: idempotencyKey,
          fingerprint: fingerprintOf(content),
          answer: JSON.stringify(answer),
          expiresAtMs: nowMs + KEY_LIFETIME_MS,
        };
  const steps = deliveries.flatMap(({ id, hook, uuid }) =>
    enqueueSteps({
      id,
      hookId: hook.id,
      eventId,
      uuid,
      body: PROFILES[hook.profile].render(event, { repository, hookId: hook.id, deliveryUuid: uuid, nowMs }),
      eventKind: event.kind,
      origin: new URL(hook.url).origin,
      ownerId: repository.ownerId,
      nowMs,
      ...(dueAtMs !== undefined && { dueAtMs }),
    }),
  );
  return {
    answer,
    content,
    key,
    steps,
    event: { id: eventId, repositoryId: repository.id, kind: event.kind, source, content, nowMs },
  };
}

function fingerprintOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

function repeatAnswer(
  holder: { readonly fingerprint: string; readonly answer: string },
  content: string,
  key: string,
): AnnouncementAnswer {
  if (holder.fingerprint === fingerprintOf(content)) return JSON.parse(holder.answer) as AnnouncementAnswer;
  throw new Failure('conflict', `Cannot announce the event: the idempotency key "${key}" stands for another one`, {
    field: 'Idempotency-Key',
  });
}
