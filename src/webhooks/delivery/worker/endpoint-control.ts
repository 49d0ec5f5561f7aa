/** What the outcome of an attempt means for its endpoint: it goes on, waits for a while, is disabled, or is let go. */
import type { Step } from '../../../database/store.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { World } from '../../../world.ts';
import { wakeOriginStep } from '../queue/delivery-restart-store.ts';
import { holdEndpointStep, moveEndpointStep } from '../queue/delivery-store.ts';
import { findDisableReason, GONE, type Outcome } from '../schedule/delivery.ts';
import type { OriginChange } from '../schedule/origin-breakers.ts';
import type { Pause } from '../schedule/pause.ts';
import type { Job, Scheduler } from '../schedule/scheduler.ts';
import type { Endpoint, EndpointBook } from './endpoint-book.ts';
import type { Settler } from './settler.ts';

/** The hook whose attempt has just failed comes so much later, so that another hook of the origin makes the next probe. */
const NEXT_PROBE_MS = 1000;

export interface EndpointControlParts {
  readonly world: World;
  readonly log: Log;
  readonly book: EndpointBook;
  readonly scheduler: Scheduler<Job>;
  readonly settler: Pick<Settler, 'change' | 'also' | 'disable'>;
  /** Something is due that was not. */
  readonly lookSoon: () => void;
}

export interface EndpointControl {
  /** Takes in what came of an attempt of the rounds. */
  learn(endpoint: Endpoint, outcome: Outcome): void;
  /** An attempt of the rounds has a connection; its answer may take longer. */
  learnOfConnection(endpoint: Endpoint): void;
  /** The same of an attempt past the breakers, for an endpoint that may not be in hand. */
  learnFromProbe(place: Pick<Endpoint, 'hookId' | 'origin'>, outcome: Outcome): void;
  /** Another process got an answer from where no connection could be made. */
  learnOfAnswerElsewhere(endpoint: Endpoint): void;
  /** Lets it wait in its row if a breaker keeps it back. */
  pauseIfKeptBack(endpoint: Endpoint): void;
  /** Nothing more is sent to it; `step` says why in its row. */
  close(endpoint: Endpoint, step: Step): void;
  /** Its hook leads to another origin by now: it is found again there. */
  move(endpoint: Endpoint, origin: string): void;
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
  const pauseFor = (endpoint: Endpoint, pause: Pause): void => {
    const { hookId, health, breaker } = endpoint;
    settler.change({ hookId, ...health, openings: breaker.openings, pause });
    stopLoading(endpoint);
  };
  const pauseIfKeptBack = (endpoint: Endpoint): void => {
    const pause = book.findPause(endpoint, world.nowMs());
    if (pause !== undefined && !endpoint.isClosed) pauseFor(endpoint, pause);
  };

  const disable = (hookId: number, reason: string): Step => {
    log.info({ hookId, reason }, 'A webhook was disabled');
    settler.disable({ hookId, reason });
    return holdEndpointStep(hookId, world.nowMs());
  };

  const followOrigin = (origin: string, change: OriginChange): void => {
    if (change.hasOriginOpened) for (const one of book.listOfOrigin(origin)) pauseIfKeptBack(one);
    if (!change.hasOriginRecovered) return;
    // Its other endpoints need not wait for their own probes.
    settler.also(wakeOriginStep(origin, world.nowMs()));
    parts.lookSoon();
  };
  const takeMoment = () => ({ nowMs: world.nowMs(), random: world.random() });

  return {
    learn: (endpoint, outcome) => {
      const { hookId, origin } = endpoint;
      const moment = takeMoment();
      const change = book.record(endpoint, outcome, moment);
      const pause = book.findPause(endpoint, moment.nowMs);
      if (pause !== undefined && !endpoint.isClosed)
        pauseFor(endpoint, change.hasOriginOpened ? { ...pause, untilMs: pause.untilMs + NEXT_PROBE_MS } : pause);
      followOrigin(origin, change);
      const reason = findDisableReason(endpoint.health, outcome, moment.nowMs);
      if (reason !== undefined) return close(endpoint, disable(hookId, reason));
      if (pause === undefined && change.hasHealthChanged)
        settler.change({ hookId, ...endpoint.health, openings: endpoint.breaker.openings, pause: null });
    },
    learnOfAnswerElsewhere: ({ origin }) => followOrigin(origin, book.recordAnswerElsewhere(origin, takeMoment())),
    learnOfConnection: ({ origin, hookId }) => {
      const change = book.recordConnection(origin, takeMoment());
      if (!change.hasOriginRecovered) return;
      followOrigin(origin, change);
      scheduler.recheck(origin, hookId);
    },
    learnFromProbe: ({ hookId, origin }, outcome) => {
      followOrigin(origin, book.recordProbe({ hookId, origin }, outcome, takeMoment()));
      if (outcome.kind === 'gone') settler.also(disable(hookId, GONE));
      scheduler.recheck(origin, hookId);
    },
    pauseIfKeptBack,
    close,
    move: (endpoint, origin) => {
      close(endpoint, moveEndpointStep(endpoint.hookId, origin));
      parts.lookSoon();
    },
    stopLoading,
    forgetWhenDone,
  };
}
