/** From an event to the rows of its deliveries. Bodies are rendered here, once; attempts send the stored bytes. */

import { createHash } from 'node:crypto';
import { setImmediate as letOthersWork } from 'node:timers/promises';
import { releaseBytes } from '../../database/release-bytes.ts';
import type { World } from '../../world.ts';
import type { NewDelivery } from '../delivery/queue/delivery-store.ts';
import { createDeliveryUuid } from '../delivery/queue/delivery-uuid.ts';
import type { Event } from '../events/event.ts';
import { subjectOf } from '../events/event-subject.ts';
import type { Hook } from '../hooks/hook.ts';
import { toOffsetTime } from '../parameters/json-body.ts';
import { PROFILES } from '../profiles/profiles.ts';
import type { Repository } from '../repositories/repository.ts';
import type { NewEvent } from './event-batch-store.ts';
import type { EventReceipt } from './event-receipt.ts';

/** The `error_code_name` of an event whose idempotency key stands for another event. */
export const KEY_USED = 'IDEMPOTENCY_KEY_USED';
/** How long a repeated event is recognised by its idempotency key. */
const KEY_LIFETIME_MS = 24 * 3600 * 1000;

export interface IncomingEvent {
  readonly repository: Repository;
  readonly event: Event;
  /** Where it came from: `api`, `git`, `cli`, `test` or the name of a bridge. */
  readonly source: string;
  readonly idempotencyKey: string | undefined;
}

/** An event and its deliveries with their ids, ready to be stored. */
export interface EventDraft {
  readonly answer: EventReceipt;
  readonly event: NewEvent;
  /** Of its content and of all bodies. */
  readonly bytes: number;
}

export interface Recipients {
  readonly hooks: readonly Hook[];
  /** When the workers may send; at once unless given. */
  readonly dueAtMs?: number;
}

export interface DraftInput {
  readonly world: World;
  /** One for the event and one for each hook. */
  readonly ids: readonly number[];
  /** The event as JSON. */
  readonly content: string;
  /** Stores the bodies that are there, whenever they are a part's worth; without it they commit with the event. */
  readonly storeBodies?: (deliveries: readonly NewDelivery[]) => Promise<void>;
}

/** After so many bytes of bodies other work of the process gets a turn: fifty large ones take half a second. */
const BYTES_OF_A_TURN = 1024 * 1024;

export async function draftEvent(
  { world, ids, content, storeBodies }: DraftInput,
  incoming: IncomingEvent,
  { hooks, dueAtMs }: Recipients,
): Promise<EventDraft> {
  const { repository, event, source, idempotencyKey } = incoming;
  const nowMs = world.nowMs();
  const [eventId = 0, ...deliveryIds] = ids;
  const addressed = hooks.map((hook, index) => ({
    id: deliveryIds[index]!,
    hook,
    uuid: createDeliveryUuid(nowMs, world.randomBytes(10)),
  }));
  const answer: EventReceipt = {
    id: eventId,
    kind: event.kind,
    project_id: repository.id,
    created_at: toOffsetTime(nowMs),
    deliveries: addressed.map(({ id, hook, uuid }) => ({ id, hook_id: hook.id, uuid })),
  };
  const ofEvent = {
    eventId,
    eventKind: event.kind,
    subject: subjectOf(event),
    ownerId: repository.ownerId,
    nowMs,
    ...(dueAtMs !== undefined && { dueAtMs }),
  };
  const deliveries: NewDelivery[] = [];
  let bytes = content.length;
  let bytesOfTurn = 0;
  const endTurn = async (): Promise<void> => {
    bytesOfTurn = 0;
    if (storeBodies === undefined) return await letOthersWork();
    await storeBodies(deliveries);
    for (const [index, delivery] of deliveries.entries()) deliveries[index] = toStored(delivery);
  };
  for (const { id, hook, uuid } of addressed) {
    const context = { repository, hookId: hook.id, deliveryUuid: uuid, nowMs };
    const body = detach(PROFILES[hook.profile].render(event, context));
    deliveries.push({ ...ofEvent, id, hookId: hook.id, uuid, body, origin: new URL(hook.url).origin });
    bytes += body.byteLength;
    bytesOfTurn += body.byteLength;
    if (bytesOfTurn >= BYTES_OF_A_TURN) await endTurn();
  }
  if (storeBodies !== undefined && bytesOfTurn > 0) await endTurn();
  const key = idempotencyKey === undefined ? undefined : describeKey(idempotencyKey, content, { answer, nowMs });
  const row = { id: eventId, repositoryId: repository.id, kind: event.kind, source, content, nowMs };
  return { answer, event: { ...row, key, deliveries }, bytes };
}

/** Its body is in the store, and no longer in memory. */
function toStored(delivery: NewDelivery): NewDelivery {
  const { body } = delivery;
  if ('storedBytes' in body) return delivery;
  const storedBytes = body.byteLength;
  releaseBytes(body);
  return { ...delivery, body: { storedBytes } };
}

function describeKey(key: string, content: string, { answer, nowMs }: { answer: EventReceipt; nowMs: number }) {
  return {
    key,
    fingerprint: fingerprintOf(content),
    answer: JSON.stringify(answer),
    expiresAtMs: nowMs + KEY_LIFETIME_MS,
  };
}

export function fingerprintOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** A small Buffer is a view on a shared pool, all of which would be cloned on its way to the writer thread. */
function detach(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}
