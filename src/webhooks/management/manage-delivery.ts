/** Lists the delivery log, redelivers, replays, and sends waiting deliveries now, also during a pause. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { decodeText } from '../delivery/queue/attempt-record.ts';
import { findDelivery, findSearchEnd, type LogFilter, listDeliveries } from '../delivery/queue/delivery-log-store.ts';
import { replay, restartWaiting } from '../delivery/queue/delivery-restart-store.ts';
import { isUuid, periodOfUuid } from '../delivery/queue/delivery-uuid.ts';
import { DELIVERY_STATES, type StoredState } from '../delivery/schedule/delivery.ts';
import { shortRef } from '../events/event.ts';
import { EVENT_KINDS, type EventKind } from '../events/event-kind.ts';
import type { Hook } from '../hooks/hook.ts';
import { type HookHold, readHold, readHookQueueStatus } from '../hooks/hook-status-store.ts';
import {
  integerParameter,
  type Parameters,
  parseId,
  parseKnownParameters,
  presetParameter,
} from '../parameters/parameters.ts';
import {
  type attemptJson,
  type deliveryDetailJson,
  type deliveryJson,
  type listedDeliveryJson,
  toAttemptJson,
  toDeliveryJson,
  toListedDeliveryJson,
} from './delivery-json.ts';
import type { Management, SendingDependencies } from './management.ts';

/** In a query an unescaped `+` is a blank, so `…T10:00:00+08:00`, copied from an answer, arrives as `…T10:00:00 08:00`. */
const time = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.replace(/ (?=\d\d:\d\d$)/, '+') : value),
    z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with Z or an offset' }),
  )
  .transform((text) => Date.parse(text))
  .openapi({ type: 'string', format: 'date-time' });

/** The highest page by number: a page costs as much as all rows before it. Beyond this page, `before` has to be used. */
const MAX_PAGE = 1000;
const STATUS_MESSAGE = 'must be a status as 500, a class as 5xx, or 0 for no answer';

/** `500`, `5xx` or `0`, as a range of statuses. */
const statusRange = z
  .preprocess((value) => String(value), z.string().regex(/^([1-9]\d\d|[1-5]xx|0)$/, STATUS_MESSAGE))
  .transform((text) => ({ from: Number(text.replace('xx', '00')), to: Number(text.replace('xx', '99')) }))
  .openapi({ type: 'string', pattern: '^([1-9]\\d\\d|[1-5]xx|0)$' });

export const listParameters = z.object({
  state: z
    .enum(DELIVERY_STATES, `must be one of ${DELIVERY_STATES.join(', ')}`)
    .optional()
    .openapi({ description: 'Only deliveries in this state.' }),
  event: z.enum(EVENT_KINDS as [string, ...string[]], `must be one of ${EVENT_KINDS.join(', ')}`).optional(),
  status_code: statusRange.optional().openapi({
    description: 'Of the last attempt: a status as 500, a class as 5xx, or 0 for no answer.',
  }),
  uuid: z
    .string()
    .toLowerCase()
    .refine(isUuid, 'must be a UUID')
    .optional()
    .openapi({ description: 'As the receiver saw it.' }),
  id: integerParameter(1, Number.MAX_SAFE_INTEGER).optional().openapi({ description: 'Only this delivery.' }),
  subject: z.string().max(200, 'must be at most 200 characters').transform(trimSubject).optional().openapi({
    description:
      'A branch, a tag, `#` and a number, or the first 10 digits of a commit. The newest 20,000 deliveries before `before` are searched; the Link header continues the search.',
  }),
  since: time.optional(),
  until: time.optional(),
  before: integerParameter(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .openapi({ description: 'Only deliveries with a smaller id; the Link header has it for the next page.' }),
  page: presetParameter(1, MAX_PAGE, 1).openapi({
    description: 'Shifts when deliveries are added meanwhile; `before` does not.',
  }),
  per_page: presetParameter(1, 100, 20),
});
export type DeliveryFilter = z.output<typeof listParameters>;

export const replayParameters = z.object({ since: time });

type DeliveryJson = z.output<typeof deliveryJson>;

/** Shortens `refs/heads/main` to `main`, as subjects are stored. */
function trimSubject(text: string): string {
  return shortRef(text.trim());
}

export interface DeliveryPage {
  readonly deliveries: readonly z.output<typeof listedDeliveryJson>[];
  /** The parameter `before` of the next page, if there is one. */
  readonly nextBefore: number | undefined;
}

/** Lists deliveries, the newest first. */
export async function readDeliveryPage(
  dependencies: Management,
  hookId: number,
  values: Parameters,
): Promise<DeliveryPage> {
  return await listDeliveryPage(
    dependencies,
    hookId,
    parseKnownParameters(listParameters, values, 'list the deliveries'),
  );
}

export async function listDeliveryPage(
  dependencies: Management,
  hookId: number,
  parameters: DeliveryFilter,
): Promise<DeliveryPage> {
  const nowMs = dependencies.world.nowMs();
  const hold = await readHold(dependencies.store, hookId, nowMs);
  const filter = describeFilter(hookId, parameters, hold);
  const endId = await findEnd(dependencies, filter);
  const found = filter === undefined ? [] : await listDeliveries(dependencies.store, { fromId: endId, ...filter });
  const page = found.slice(0, parameters.per_page);
  return {
    deliveries: page.map((delivery) => toListedDeliveryJson(delivery, hold, nowMs)),
    nextBefore: found.length > page.length ? (page.at(-1)?.id ?? 0) : endId,
  };
}

/** Where a search by subject stops, to be continued in another request: subjects have no index. */
async function findEnd({ store }: Management, filter: LogFilter | undefined): Promise<number | undefined> {
  if (filter?.subject === undefined) return undefined;
  return await findSearchEnd(store, filter);
}

/** Undefined if no delivery can match: those of a hook are either pending or held. */
function describeFilter(hookId: number, parameters: DeliveryFilter, { isHeld }: HookHold): LogFilter | undefined {
  const { state, event, since = 0, until = Number.MAX_SAFE_INTEGER, before = Number.MAX_SAFE_INTEGER } = parameters;
  const { status_code: status, uuid, id, subject } = parameters;
  const period = uuid === undefined ? undefined : periodOfUuid(uuid);
  if (state === (isHeld ? 'pending' : 'held')) return undefined;
  return {
    hookId,
    state: (state === 'held' ? 'pending' : state) as StoredState | undefined,
    eventKind: event as EventKind | undefined,
    status,
    uuid,
    subject,
    ...(id === undefined ? {} : { fromId: id }),
    sinceMs: Math.max(since, period?.sinceMs ?? 0),
    untilMs: Math.min(until, period?.untilMs ?? until),
    beforeId: id === undefined ? before : Math.min(before, id + 1),
    offset: (parameters.page - 1) * parameters.per_page,
    limit: parameters.per_page + 1,
  };
}

/** Reads a delivery with every attempt. */
export async function readDelivery(
  dependencies: Management,
  hookId: number,
  id: string,
): Promise<z.output<typeof deliveryDetailJson>> {
  const found = await findDelivery(dependencies.store, hookId, await findDeliveryId(dependencies, hookId, id));
  if (found === undefined) throw refuseUnknownDelivery(id);
  const nowMs = dependencies.world.nowMs();
  const last = found.attempts.at(-1);
  const listed = { ...found.delivery, reason: last?.reason ?? null, detail: last?.detail ?? null };
  return {
    ...toListedDeliveryJson(listed, await readHold(dependencies.store, hookId, nowMs), nowMs),
    request_body: decodeText(found.delivery.body),
    attempt_log: found.attempts.map(toAttemptJson),
  };
}

/** Sends a delivery again, with the same bytes and the same id, in a new schedule of attempts whose first is made at once. */
export async function sendAgain(dependencies: SendingDependencies, hook: Hook, id: string): Promise<DeliveryJson> {
  await dependencies.guard.checkUrl(hook.url);
  const deliveryId = await findDeliveryId(dependencies, hook.id, id);
  const redelivery = await dependencies.manual.redeliver(hook.id, deliveryId);
  const found = redelivery && (await findDelivery(dependencies.store, hook.id, deliveryId));
  if (found === undefined) throw refuseUnknownDelivery(id);
  const nowMs = dependencies.world.nowMs();
  return toDeliveryJson(found.delivery, await readHold(dependencies.store, hook.id, nowMs), nowMs);
}

export interface SentDelivery {
  readonly delivery: number;
  /** `held` while the hook is off; `pending` while the delivery waits for its turn or for another attempt. */
  readonly state: DeliveryJson['state'];
  readonly accepted: boolean;
  /** The attempt of this request; null if it was not made yet. */
  readonly attempt: z.output<typeof attemptJson> | null;
}

/** Sends a delivery again as `sendAgain` does, and waits for the attempt. */
export async function sendAgainNow(dependencies: SendingDependencies, hook: Hook, id: string): Promise<SentDelivery> {
  await dependencies.guard.checkUrl(hook.url);
  const deliveryId = await findDeliveryId(dependencies, hook.id, id);
  const redelivery = await dependencies.manual.redeliver(hook.id, deliveryId);
  if (redelivery === undefined) throw refuseUnknownDelivery(id);
  const isAttempted = (await redelivery.attempt) !== undefined;
  return await describeSent(dependencies, hook, { deliveryId, isAttempted });
}

/** Describes the result of sending a delivery. */
export async function describeSent(
  { store, world }: Management,
  hook: Hook,
  { deliveryId, isAttempted }: { readonly deliveryId: number; readonly isAttempted: boolean },
): Promise<SentDelivery> {
  const found = await findDelivery(store, hook.id, deliveryId);
  if (found === undefined) throw refuseUnknownDelivery(String(deliveryId));
  const nowMs = world.nowMs();
  const last = isAttempted ? found.attempts.at(-1) : undefined;
  return {
    delivery: deliveryId,
    state: toDeliveryJson(found.delivery, await readHold(store, hook.id, nowMs), nowMs).state,
    accepted: last?.outcome === 'accepted',
    attempt: last === undefined ? null : toAttemptJson(last),
  };
}

/** Sends all deliveries again that failed permanently since a time; returns how many. */
export async function replaySince(dependencies: Management, hook: Hook, values: Parameters): Promise<number> {
  return await replayFrom(
    dependencies,
    hook,
    parseKnownParameters(replayParameters, values, 'replay the deliveries').since,
  );
}

export async function replayFrom(dependencies: Management, hook: Hook, since: number): Promise<number> {
  await dependencies.guard.checkUrl(hook.url);
  const replayed = await replay(dependencies.store, hook.id, since, dependencies.world.nowMs());
  dependencies.wakeDeliveries();
  return replayed;
}

/** Sends waiting deliveries now, also during a pause; returns how many wait, at most 10,000. Throws `conflict` if the hook is off. */
export async function sendWaiting(dependencies: Management, hook: Hook): Promise<number> {
  const { store, world } = dependencies;
  if (hook.disabledAtMs !== null)
    throw new Failure('conflict', 'Cannot send what waits: the webhook is off, and enabling it sends what is held');
  await dependencies.guard.checkUrl(hook.url);
  const { waiting } = await readHookQueueStatus(store, hook.id);
  await restartWaiting(store, hook.id, world.nowMs());
  dependencies.wakeDeliveries();
  return waiting;
}

/** Finds a delivery by its id, or by the UUID that its receiver saw. */
async function findDeliveryId(dependencies: Management, hookId: number, text: string): Promise<number> {
  const uuid = text.toLowerCase();
  if (!isUuid(uuid)) return parseId(text, 'delivery_id', 'a whole number or a UUID');
  const filter = { hookId, uuid, ...periodOfUuid(uuid), beforeId: Number.MAX_SAFE_INTEGER, limit: 1 };
  const [delivery] = await listDeliveries(dependencies.store, filter);
  if (delivery === undefined) throw refuseUnknownDelivery(text);
  return delivery.id;
}

function refuseUnknownDelivery(id: string): Failure {
  return new Failure('not_found', `Delivery not found: the webhook has no delivery ${id}`, {
    errorCode: 1003,
    errorCodeName: 'NOT_EXIST',
  });
}
