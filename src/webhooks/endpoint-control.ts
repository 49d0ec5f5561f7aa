/** What the outcome of an attempt means for its endpoint: it goes on, waits for a while, is disabled, or is let go. */
import type { Step } from '../database/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { World } from '../world.ts';
import { ENDPOINT_BREAKER } from './breaker.ts';
import { findDisableReason, GONE, type Outcome } from './delivery.ts';
import { wakeOriginStep } from './delivery-restart-store.ts';
import { holdEndpointStep } from './delivery-store.ts';
import type { Change, Endpoint, EndpointBook } from './endpoint-book.ts';
import type { Job, Scheduler } from './scheduler.ts';
import type { Settler } from './settler.ts';

export interface EndpointControlParts {
  readonly world: World;
  readonly log: Log;
  readonly book: EndpointBook;
  readonly scheduler: Scheduler<Job>;
  readonly settler: Settler;
  /** Something is due that was not. */
  readonly lookSoon: () => void;
}

export interface EndpointControl {
  /** Takes in what came of an attempt of the rounds. */
  learn(endpoint: Endpoint, outcome: Outcome): void;
  /** The same of an attempt past the breakers, for an endpoint that may not be in hand. */
  learnFromProbe(place: Pick<Endpoint, 'hookId' | 'origin'>, outcome: Outcome): void;
  /** Lets it wait in its row if a breaker keeps it back. */
  pauseIfKeptBack(endpoint: Endpoint): void;
  /** Nothing more is sent to it; `step` says why in its row. */
  close(endpoint: Endpoint, step: Step): void;
  /** Forgets what waits in memory; it is still pending in its rows. */
  stopLoading(endpoint: Endpoint): void;
  forgetWhenDone(endpoint: Endpoint): void;
}

export function createEndpointControl(parts: EndpointControlParts): EndpointControl {
  const { world, log, book, scheduler, settler } = parts;

  const forgetWhenDone = (endpoint: Endpoint): void => {
    if (endpoint.isClosed && endpoint.known.size === 0) book.forget(endpoint);
  };
  const stopLoading = (endpoint: Endpoint): void => {
    endpoint.isClosed = true;
    for (const job of scheduler.drop(endpoint.hookId)) endpoint.known.delete(job.id);
    forgetWhenDone(endpoint);
  };
  const close = (endpoint: Endpoint, step: Step): void => {
    settler.also(step);
    stopLoading(endpoint);
  };

  /** One row says until when; in memory the endpoint is forgotten. */
  const pauseIfKeptBack = (endpoint: Endpoint): void => {
    const pausedUntilMs = book.pausedUntilMs(endpoint, world.nowMs());
    if (pausedUntilMs === undefined || endpoint.isClosed) return;
    settler.change({ hookId: endpoint.hookId, ...endpoint.health, pausedUntilMs });
    stopLoading(endpoint);
  };

  const disable = (hookId: number, reason: string): Step => {
    log.info({ hookId, reason }, 'A webhook was disabled');
    settler.disable({ hookId, reason });
    return holdEndpointStep(hookId, world.nowMs());
  };

  const followOrigin = (origin: string, change: Change): void => {
    if (change.hasOriginOpened) for (const one of book.listOfOrigin(origin)) pauseIfKeptBack(one);
    if (!change.hasOriginRecovered) return;
    // Its other endpoints need not wait for their own probes.
    settler.also(wakeOriginStep(origin, ENDPOINT_BREAKER.threshold, world.nowMs()));
    parts.lookSoon();
  };

  return {
    learn: (endpoint, outcome) => {
      const { hookId, origin } = endpoint;
      const nowMs = world.nowMs();
      const change = book.record(endpoint, outcome, { nowMs, random: world.random() });
      followOrigin(origin, change);
      const reason = findDisableReason(endpoint.health, outcome, nowMs);
      if (reason !== undefined) return close(endpoint, disable(hookId, reason));
      if (book.pausedUntilMs(endpoint, nowMs) !== undefined) return pauseIfKeptBack(endpoint);
      if (change.hasHealthChanged) settler.change({ hookId, ...endpoint.health, pausedUntilMs: null });
    },
    learnFromProbe: ({ hookId, origin }, outcome) => {
      const nowMs = world.nowMs();
      followOrigin(origin, book.recordProbe({ hookId, origin }, outcome, { nowMs, random: world.random() }));
      if (outcome.kind === 'gone') settler.also(disable(hookId, GONE));
      scheduler.recheck(origin, hookId);
    },
    pauseIfKeptBack,
    close,
    stopLoading,
    forgetWhenDone,
  };
}
