/**
 * Accepts every published event, and refuses more when too many wait (503). An event and one delivery for each hook that
 * subscribes to its kind commit together, before the sender gets its receipt: the statements are in `event-batch-store.ts`.
 * Events that arrive while a commit is under way share the next one (`group-commit.ts`).
 *
 * The bodies of an event that exceed one commit (`MAX_BYTES`) are stored in parts first; then the event commits with its deliveries
 * like any other. An event whose idempotency key an earlier event has is not stored: its sender gets the earlier receipt if both events
 * are the same, and is refused otherwise.
 */
import { Failure } from '../../errors.ts';
import { serializeEvent } from '../events/serialize-event.ts';
import type { Repository } from '../repositories/repository.ts';
import { refuseDeleted } from '../repositories/repository-access.ts';
import { commitPrepared, isDuplicate, MAX_BYTES } from './commit-events.ts';
import type { EventReceipt } from './event-receipt.ts';
import { createGroupCommit } from './group-commit.ts';
import type { IntakeDependencies, PendingEvent, StoreOutcome } from './pending-event.ts';
import { fingerprintOf, type IncomingEvent, KEY_USED, type TargetHooks } from './prepare-event.ts';
import { storeInParts } from './store-in-parts.ts';

const MAX_EVENTS = 64;
/** Limit of the bytes of one owner's waiting events, of which one may have any size. Events stored in parts are counted separately. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** The limit for all owners together. Requests of these events no longer count as HTTP bodies, so this limit bounds their memory. */
const MAX_BYTES_OF_ALL = 32 * 1024 * 1024;
/** Beyond that limit each owner may have one event of this size, so that large events of others do not keep it out. */
const SMALL_BYTES = 64 * 1024;
/** How often an event is prepared with new ids if one of its ids is taken, perhaps by an older release that also runs. */
const MAX_PREPARATIONS = 5;

export interface Intake {
  /** Stores an event for the hooks that subscribe to it, or for `targetHooks`. A repeated event gets the first receipt. */
  accept(incoming: IncomingEvent, targetHooks?: TargetHooks): Promise<EventReceipt>;
  /** Throws `unavailable` if an event of this many bytes would be refused, so that its request need not be read. */
  checkRoom(repository: Pick<Repository, 'ownerId'>, bytes: number): void;
}

export function createIntake(dependencies: IntakeDependencies): Intake {
  const limits = {
    maxWaitingBytes: MAX_WAITING_BYTES,
    maxBytesOfAll: MAX_BYTES_OF_ALL,
    smallBytes: SMALL_BYTES,
    ownerOf: ({ incoming }: PendingEvent) => incoming.repository.ownerId,
  };
  const group = createGroupCommit<PendingEvent, StoreOutcome>({
    ...limits,
    maxItems: MAX_EVENTS,
    bytesOf: ({ content, prepared }) => (prepared === undefined ? Buffer.byteLength(content) : 0),
    commit: (pendingEvents) => commit(dependencies, pendingEvents),
  });
  // One event at a time, so that only one part of bodies is in memory.
  const largeGroup = createGroupCommit<PendingEvent, StoreOutcome>({
    ...limits,
    maxItems: 1,
    bytesOf: ({ content }) => Buffer.byteLength(content),
    commit: async ([pendingEvent]) => [await retryWithNewIds(() => storeInParts(dependencies, pendingEvent!, group))],
  });
  const submit = async (pendingEvent: PendingEvent): Promise<StoreOutcome> => {
    const outcome = await group.submit(pendingEvent);
    return 'needsPartsFor' in outcome
      ? await largeGroup.submit({ ...pendingEvent, targetHooks: outcome.needsPartsFor })
      : outcome;
  };
  return {
    // An event of at most half of `MAX_BYTES` may fit into one commit together with a body.
    checkRoom: ({ ownerId }, bytes) => {
      if (2 * bytes > MAX_BYTES) largeGroup.checkRoom(ownerId, bytes);
    },
    accept: async (incoming, targetHooks) => {
      const { event, content } = serializeEvent(incoming.event);
      const pendingEvent = { incoming: { ...incoming, event }, targetHooks, content };
      return toReceipt(await refuseDeleted(incoming.repository, submit(pendingEvent)), pendingEvent);
    },
  };
}

function commit(
  dependencies: IntakeDependencies,
  pendingEvents: readonly PendingEvent[],
): Promise<(StoreOutcome | undefined)[]> {
  // The bodies of a large event are stored already, under its ids, which therefore cannot change here: `largeGroup` retries as a whole.
  if (pendingEvents[0]?.prepared !== undefined) return commitPrepared(dependencies, pendingEvents);
  return retryWithNewIds(() => commitPrepared(dependencies, pendingEvents));
}

/** Repeats the work, which makes new ids each time, if one of the ids is taken. */
async function retryWithNewIds<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let preparations = 1; ; preparations += 1)
    try {
      return await work();
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      if (preparations === MAX_PREPARATIONS) throw refuseTakenIds(error);
    }
}

/** Replaces the `conflict` of the store, which would tell the sender that the event can never be stored. */
function refuseTakenIds(cause: unknown): Failure {
  const message = 'Cannot publish the event right now: its ids are taken';
  return new Failure('unavailable', message, { retryAfterSeconds: 1 }, { cause });
}

function toReceipt(outcome: StoreOutcome, { content, incoming: { idempotencyKey } }: PendingEvent): EventReceipt {
  if ('receipt' in outcome) return outcome.receipt;
  if ('needsPartsFor' in outcome) throw new Failure('internal', 'Cannot publish the event: it is too large');
  const { earlier } = outcome;
  if (earlier.fingerprint === fingerprintOf(content)) return JSON.parse(earlier.answer) as EventReceipt;
  throw new Failure(
    'conflict',
    `Cannot publish the event: the idempotency key "${idempotencyKey ?? ''}" was sent with another event in the last 24 hours`,
    { field: 'Idempotency-Key', errorCodeName: KEY_USED },
  );
}
