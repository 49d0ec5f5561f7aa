/**
 * Attempts that a person asks for. They are made at once, by this process, whatever shard the endpoint belongs to and
 * whatever pause or breaker keeps it back: one attempt does no harm, and it tells whether the endpoint works again. What
 * comes of it is stored like any other attempt; a success ends the pause, a failure does not lengthen it.
 */
import { createInFlight } from '../../../database/in-flight.ts';
import type { Store } from '../../../database/store.ts';
import { Failure, isFailure } from '../../../errors.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import { readContents } from '../queue/delivery-queue-store.ts';
import {
  countFailureStep,
  giveBack,
  recoverEndpointStep,
  restart,
  takeAgain,
  takeTest,
} from '../queue/delivery-restart-store.ts';
import { OUTSIDE_SHARDS, type Settlement } from '../queue/settlement-store.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import type { SendReport } from '../send/send-report.ts';
import { type Attempt, describeSettlement, type MakeAttempt } from './attempt.ts';
import type { EndpointControl } from './endpoint-control.ts';
import type { Settler } from './settler.ts';

/** A delivery falls to the workers so long after the deadline of its attempt. */
const GRACE_MS = 10_000;
/** At once in this process, and of one hook: what is asked for beyond that goes the way of all others. */
const MAX_AT_ONCE = 32;
const MAX_OF_HOOK = 4;

export interface UrgentAttempts {
  /**
   * Makes the one attempt of a test's delivery, which was enqueued for later, until `deadlineMs` (since the epoch): also
   * to a hook that is disabled, since a test is how its owner learns that it works again. Undefined when it was taken
   * already or this process stops.
   */
  test(deliveryId: number, deadlineMs: number): Promise<SendReport | undefined>;
  /**
   * Starts the schedule of a delivery anew, with an attempt at once. Undefined when there is no such delivery; else, once
   * that is stored, `attempt`, which resolves when the attempt has ended. Throws `conflict` while an attempt that was
   * asked for before has not ended: what was asked for is sent once.
   */
  redeliver(hookId: number, deliveryId: number): Promise<Redelivery | undefined>;
  /** Resolves when nothing is under way; afterwards nothing begins. */
  stop(): Promise<void>;
}

export interface Redelivery {
  /** Undefined when nothing is sent now: the hook is disabled, too many are under way, or this process stops. */
  readonly attempt: Promise<SendReport | undefined>;
}

export interface UrgentAttemptsParts {
  readonly store: Store;
  readonly world: World;
  readonly log: Log;
  readonly settler: Settler;
  readonly control: EndpointControl;
  readonly makeAttempt: MakeAttempt;
  /** Something is left to the workers. */
  readonly poke: () => void;
}

export function createUrgentAttempts(parts: UrgentAttemptsParts): UrgentAttempts {
  const { store, world, log, settler, control, makeAttempt } = parts;
  const inFlight = createInFlight();
  const slots = createSlots();
  let isStopping = false;

  const attempt = async (
    { hookId, id, isTest }: { hookId: number; id: number; isTest: boolean },
    deadlineMs: number,
  ): Promise<SendReport | undefined> => {
    const [content] = await readContents(store, [{ hookId, id }]);
    if (content === undefined || content.url === null) return undefined;
    if (content.disabled_at_ms !== null && !isTest) return await leaveHeld(hookId, id);
    const [attemptId = 0] = await store.makeIds(1);
    const leftMs = Math.max(1, Math.min(ATTEMPT_DEADLINE_MS, deadlineMs - world.nowMs()));
    const made = await makeAttempt(content, leftMs);
    const settlement = describeSettlement(made, { ...OUTSIDE_SHARDS, attemptId }, world);
    settle(made, isTest ? endWithAttempt(settlement) : settlement, new URL(content.url).origin);
    await settler.flush();
    return made.report;
  };
  // The workers send it when its hook is enabled.
  const leaveHeld = async (hookId: number, id: number): Promise<undefined> => {
    await giveBack(store, [hookId, id], world.nowMs());
  };
  const settle = (made: Attempt, settlement: Settlement, origin: string): void => {
    const { outcome } = made.report;
    const hookId = made.content.hook_id;
    settler.settle(settlement, made.report);
    const step = outcome.kind === 'accepted' ? recoverEndpointStep : countFailureStep;
    settler.also(step(hookId, world.nowMs()));
    control.learnFromProbe({ hookId, origin }, outcome);
  };

  const reportFailure = (error: unknown): void => {
    log.warn({ err: error }, 'A redelivery failed or is left to the workers');
  };
  const leaveToWorkers = async (hookId: number, id: number): Promise<Redelivery | undefined> => {
    const outcome = await restart(store, [hookId, id], world.nowMs());
    if (outcome === 'asked') throw refuseSecond(id);
    if (outcome === 'absent') return undefined;
    parts.poke();
    return { attempt: Promise.resolve(undefined) };
  };

  return {
    test: (deliveryId, deadlineMs) =>
      inFlight.track(async () => {
        if (isStopping) return undefined;
        const hookId = await takeTest(store, deliveryId, deadlineMs + GRACE_MS);
        return hookId === undefined ? undefined : await attempt({ hookId, id: deliveryId, isTest: true }, deadlineMs);
      }),
    redeliver: async (hookId, deliveryId) => {
      const leaveSlot = isStopping ? undefined : slots.take(hookId);
      if (leaveSlot === undefined) return await leaveToWorkers(hookId, deliveryId);
      const deadlineMs = world.nowMs() + ATTEMPT_DEADLINE_MS;
      const taking = { nowMs: world.nowMs(), untilMs: deadlineMs + GRACE_MS };
      const begun = takeAgain(store, [hookId, deliveryId], taking).then((outcome) => {
        if (outcome === 'asked') throw refuseSecond(deliveryId);
        if (outcome === 'absent') return undefined;
        return { attempt: inFlight.track(() => attempt({ hookId, id: deliveryId, isTest: false }, deadlineMs)) };
      });
      void begun
        .then((redelivery) => redelivery?.attempt)
        .catch((error: unknown) => {
          if (!isFailure(error) || error.code !== 'conflict') reportFailure(error);
        })
        .finally(leaveSlot);
      return await begun;
    },
    stop: async () => {
      isStopping = true;
      await inFlight.settle();
    },
  };
}

function refuseSecond(deliveryId: number): Failure {
  const message = `Cannot redeliver ${deliveryId}: it is being sent, or waits to be, as was asked for before`;
  return new Failure('conflict', message);
}

/** What a test sends stands for nothing that happened: it is not sent again days later. */
function endWithAttempt(settlement: Settlement): Settlement {
  return settlement.state === 'pending' ? { ...settlement, state: 'dead' } : settlement;
}

/** Counts what is under way; `take` gives the way to leave again, or nothing where there are enough. */
function createSlots() {
  const counts = new Map<number, number>();
  let total = 0;
  const change = (hookId: number, by: 1 | -1): void => {
    total += by;
    const count = (counts.get(hookId) ?? 0) + by;
    if (count === 0) counts.delete(hookId);
    else counts.set(hookId, count);
  };
  return {
    take: (hookId: number): (() => void) | undefined => {
      if (total >= MAX_AT_ONCE || (counts.get(hookId) ?? 0) >= MAX_OF_HOOK) return undefined;
      change(hookId, 1);
      return () => change(hookId, -1);
    },
  };
}
