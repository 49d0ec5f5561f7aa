/**
 * Makes the rows of an event and its deliveries, renders bodies once, and decides how long its idempotency key lasts. Every
 * attempt sends the stored bytes.
 */

import { createHash } from 'node:crypto';
import { setImmediate as letOthersWork } from 'node:timers/promises';
import { releaseBytes } from '../../database/release-bytes.ts';
import type { World } from '../../world.ts';
import { type CommittedDelivery, describeCommitted } from '../delivery/queue/committed-delivery.ts';
import type { NewDelivery } from '../delivery/queue/delivery-store.ts';
import { createDeliveryUuid } from '../delivery/queue/delivery-uuid.ts';
import type { Event } from '../events/event.ts';
import { subjectOf } from '../events/event-subject.ts';
import type { TargetHook } from '../hooks/target-hook-store.ts';
import { toOffsetTime } from '../parameters/json-body.ts';
import { PROFILES } from '../profiles/profiles.ts';
import type { Repository } from '../repositories/repository.ts';
import type { NewEvent } from './event-batch-store.ts';
import type { EventReceipt } from './event-receipt.ts';

/** The `error_code_name` of the refusal of an event whose idempotency key belongs to another event. */
export const KEY_USED = 'IDEMPOTENCY_KEY_USED';
/** How long a repeated event is recognised by its idempotency key. */
const KEY_LIFETIME_MS = 24 * 3600 * 1000;

export interface IncomingEvent {
  readonly repository: Repository;
  readonly event: Event;
  /** The origin of the event: `api`, `git`, `cli`, `test` or the name of a bridge. */
  readonly source: string;
  readonly idempotencyKey: string | undefined;
}

/** An event and its deliveries with their ids and bodies, ready to be stored. */
export interface PreparedEvent {
  readonly receipt: EventReceipt;
  readonly event: NewEvent;
  /** The size of its content and of all bodies. */
  readonly bytes: number;
  /** The deliveries that are given to the workers after the commit, without those that are due later. */
  readonly committed: readonly CommittedDelivery[];
}

export interface TargetHooks {
  readonly hooks: readonly TargetHook[];
  /** The workers may send the deliveries from this time on; at once unless given. */
  readonly dueAtMs?: number;
}

export interface PreparationInput {
  readonly world: World;
  /** The id of the event, then one id for each delivery. */
  readonly ids: readonly number[];
  /** The event as JSON. */
  readonly content: string;
  /** Called with the bodies so far when they reach `BYTES_OF_A_TURN`. If not given, all bodies are stored with the event. */
  readonly storeBodies?: (deliveries: readonly NewDelivery[]) => Promise<void>;
}

/** After rendering this many bytes, other work gets a turn of the event loop: fifty large bodies take half a second. */
const BYTES_OF_A_TURN = 1024 * 1024;

export async function prepareEvent(
  { world, ids, content, storeBodies }: PreparationInput,
  incoming: IncomingEvent,
  { hooks, dueAtMs }: TargetHooks,
): Promise<PreparedEvent> {
  const { repository, event, source, idempotencyKey } = incoming;
  const nowMs = world.nowMs();
  const [eventId = 0, ...deliveryIds] = ids;
  const makeUuid = () => createDeliveryUuid(nowMs, world.randomBytes(10));
  const addressed = hooks.map((stored, index) => ({ ...stored, id: deliveryIds[index]!, uuid: makeUuid() }));
  const receipt: EventReceipt = {
    id: eventId,
    kind: event.kind,
    project_id: repository.id,
    created_at: toOffsetTime(nowMs),
    deliveries: addressed.map(({ id, hook, uuid }) => ({ id, hook_id: hook.id, uuid })),
  };
  const ofEvent = { eventId, nowMs, ...(dueAtMs !== undefined && { dueAtMs }) };
  const { deliveries, bodyBytes } = await renderDeliveries(addressed, { ...incoming, ofEvent }, storeBodies);
  const key = idempotencyKey === undefined ? undefined : describeKey(idempotencyKey, content, { receipt, nowMs });
  const row = { id: eventId, repositoryId: repository.id, kind: event.kind, source, content, nowMs };
  const due = dueAtMs === undefined ? deliveries : [];
  const committed = due.map((one, index) => describeCommitted(one, hooks[index]!));
  return { receipt, event: { ...row, key, deliveries }, bytes: Buffer.byteLength(content) + bodyBytes, committed };
}

interface AddressedDelivery {
  readonly id: number;
  readonly hook: TargetHook['hook'];
  readonly uuid: string;
}

interface RenderedEvent extends Pick<IncomingEvent, 'repository' | 'event'> {
  /** Fields that all deliveries of the event share. */
  readonly ofEvent: Pick<NewDelivery, 'eventId' | 'nowMs' | 'dueAtMs'>;
}

/** Renders the bodies one after the other, with turns of the event loop for other work in between. */
async function renderDeliveries(
  addressed: readonly AddressedDelivery[],
  { repository, event, ofEvent }: RenderedEvent,
  storeBodies: PreparationInput['storeBodies'],
): Promise<{ readonly deliveries: NewDelivery[]; readonly bodyBytes: number }> {
  const shared = { ...ofEvent, eventKind: event.kind, subject: subjectOf(event), ownerId: repository.ownerId };
  const deliveries: NewDelivery[] = [];
  let bodyBytes = 0;
  let bytesOfTurn = 0;
  const endTurn = async (): Promise<void> => {
    bytesOfTurn = 0;
    if (storeBodies === undefined) return await letOthersWork();
    await storeBodies(deliveries);
    for (const [index, delivery] of deliveries.entries()) deliveries[index] = toStored(delivery);
  };
  for (const { id, hook, uuid } of addressed) {
    const context = { repository, hookId: hook.id, deliveryUuid: uuid, nowMs: ofEvent.nowMs };
    const body = PROFILES[hook.profile].render(event, context);
    const { profile } = hook;
    deliveries.push({ ...shared, id, hookId: hook.id, uuid, body, profile, origin: new URL(hook.url).origin });
    bodyBytes += body.byteLength;
    bytesOfTurn += body.byteLength;
    if (bytesOfTurn >= BYTES_OF_A_TURN) await endTurn();
  }
  if (storeBodies !== undefined && bytesOfTurn > 0) await endTurn();
  return { deliveries, bodyBytes };
}

/** Replaces a body that is stored now, so that its memory is released. */
function toStored(delivery: NewDelivery): NewDelivery {
  const { body } = delivery;
  if ('storedBytes' in body) return delivery;
  const storedBytes = body.byteLength;
  releaseBytes(body);
  return { ...delivery, body: { storedBytes } };
}

function describeKey(key: string, content: string, { receipt, nowMs }: { receipt: EventReceipt; nowMs: number }) {
  return {
    key,
    fingerprint: fingerprintOf(content),
    answer: JSON.stringify(receipt),
    expiresAtMs: nowMs + KEY_LIFETIME_MS,
  };
}

export function fingerprintOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}
