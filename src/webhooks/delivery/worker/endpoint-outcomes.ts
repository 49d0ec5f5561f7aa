/**
 * What attempts and scans mean for endpoints: an endpoint goes on, is paused, or is disabled, and others of its origin are
 * paused or woken. Each function updates the table and returns the changes that have to be stored.
 */
import type { DueEndpoint } from '../queue/delivery-queue-store.ts';
import type { EndpointChange } from '../queue/endpoint-change-store.ts';
import { type Outcome, toBreakerEvents } from '../schedule/attempt-outcome.ts';
import { type Breaker, type BreakerEvent, type BreakerMoment, isPauseOver } from '../schedule/breaker.ts';
import { findDisableReason, GONE } from '../schedule/disable-failing-hook.ts';
import type { OriginChange } from '../schedule/origin-breakers.ts';
import { type Pause, RECONNECTED } from '../schedule/pause-reason.ts';
import { advanceHook, type Endpoint, recordOfHook } from './delivery-endpoint.ts';
import { drain, type EndpointTable, listEndpoints, noteDue, takeMoment } from './endpoint-table.ts';

/** After a failed probe its hook waits so much longer, so that another hook of the origin makes the next one. */
const NEXT_PROBE_MS = 1000;

const BEGIN: BreakerEvent = { kind: 'begin' };
const SUCCESS: BreakerEvent = { kind: 'success' };

/** Takes in what a scan found. Endpoints that a breaker keeps back wait in their rows. */
export function takeDue(table: EndpointTable, rows: readonly DueEndpoint[]): EndpointChange[] {
  return rows.flatMap((row) => {
    const endpoint = noteDue(table, row);
    if (endpoint === undefined) return [];
    const isReconnected = row.pause_reason === RECONNECTED;
    return [...(isReconnected ? recordAnswerElsewhere(table, endpoint) : []), ...pauseIfKeptBack(table, endpoint)];
  });
}

/** Another process got an answer from the origin: as if its pause had ended and the probe were answered. */
function recordAnswerElsewhere(table: EndpointTable, { origin }: Endpoint): EndpointChange[] {
  if (table.origins.find(origin).state !== 'open') return [];
  return followOrigin(table, origin, probeOrigin(table, origin, SUCCESS));
}

/** A scheduled attempt has a connection. That answers the probe of its origin: the receiver's answer may take long. */
export function recordConnection(table: EndpointTable, { origin, hookId }: Endpoint): EndpointChange[] {
  const moment = takeMoment(table);
  if (table.origins.find(origin).state !== 'probing') return [];
  const change = table.origins.record(origin, SUCCESS, moment);
  if (!change.hasOriginRecovered) return [];
  const changes = followOrigin(table, origin, change);
  table.scheduler.recheck(origin, hookId);
  return changes;
}

/** A scheduled attempt has ended. */
export function recordOutcome(table: EndpointTable, endpoint: Endpoint, outcome: Outcome): EndpointChange[] {
  const moment = takeMoment(table);
  const hasHealthChanged = recordOfHook(endpoint, outcome, moment);
  const { ofOrigin } = toBreakerEvents(outcome);
  const origin = ofOrigin && table.origins.record(endpoint.origin, ofOrigin, moment);
  const pause = findPause(table, endpoint, moment.nowMs);
  const changes = [
    ...(pause === undefined ? [] : pauseFor(table, endpoint, origin?.hasOriginOpened ? delayProbe(pause) : pause)),
    ...followOrigin(table, endpoint.origin, origin),
  ];
  const reason = findDisableReason(endpoint.health, outcome, moment.nowMs);
  if (reason !== undefined) return [...changes, disable(table, endpoint, reason)];
  return pause === undefined && hasHealthChanged ? [...changes, describeHealth(endpoint, null)] : changes;
}

/**
 * A manual attempt has ended, which was made past the breakers; its endpoint need not be in memory. A success ends their
 * pauses. A failure counts as a probe only when one was due, so that no caller can lengthen a pause by asking often.
 */
export function recordManualOutcome(
  table: EndpointTable,
  { hookId, origin }: Pick<Endpoint, 'hookId' | 'origin'>,
  outcome: Outcome,
): EndpointChange[] {
  const { ofHook, ofOrigin } = toBreakerEvents(outcome);
  const endpoint = table.endpoints.get(hookId);
  if (endpoint !== undefined) {
    const moment = takeMoment(table);
    advanceHook(endpoint, BEGIN, beginProbe(ofHook, moment));
    recordOfHook(endpoint, outcome, moment);
  }
  const changes = followOrigin(table, origin, ofOrigin && probeOrigin(table, origin, ofOrigin));
  table.scheduler.recheck(origin, hookId);
  const stored: EndpointChange = { kind: outcome.kind === 'accepted' ? 'recover' : 'count failure', hookId };
  return [stored, ...changes, ...(outcome.kind === 'gone' ? [{ kind: 'disable' as const, hookId, reason: GONE }] : [])];
}

function probeOrigin(table: EndpointTable, origin: string, event: BreakerEvent): OriginChange {
  const moment = takeMoment(table);
  table.origins.record(origin, BEGIN, beginProbe(event, moment));
  return table.origins.record(origin, event, moment);
}

/** A success counts as if the pause had just ended. */
function beginProbe(event: BreakerEvent | undefined, moment: BreakerMoment): BreakerMoment {
  return event?.kind === 'success' ? { ...moment, nowMs: Number.POSITIVE_INFINITY } : moment;
}

/** An origin that opened pauses all its endpoints; one that recovered wakes those that wait in their rows. */
function followOrigin(table: EndpointTable, origin: string, change: OriginChange | undefined): EndpointChange[] {
  const kept = change?.hasOriginOpened ? listEndpoints(table, (one) => one.origin === origin) : [];
  const pauses = kept.flatMap((endpoint) => pauseIfKeptBack(table, endpoint));
  return change?.hasOriginRecovered ? [...pauses, { kind: 'wake origin', origin }] : pauses;
}

function pauseIfKeptBack(table: EndpointTable, endpoint: Endpoint): EndpointChange[] {
  const pause = findPause(table, endpoint, table.world.nowMs());
  return pause === undefined ? [] : pauseFor(table, endpoint, pause);
}

/** Its row tells until when; in memory the endpoint is forgotten. */
function pauseFor(table: EndpointTable, endpoint: Endpoint, pause: Pause): EndpointChange[] {
  if (endpoint.state === 'draining') return [];
  drain(table, endpoint);
  return [describeHealth(endpoint, pause)];
}

function disable(table: EndpointTable, endpoint: Endpoint, reason: string): EndpointChange {
  drain(table, endpoint);
  return { kind: 'disable', hookId: endpoint.hookId, reason };
}

function describeHealth({ hookId, health, breaker }: Endpoint, pause: Pause | null): EndpointChange {
  return { kind: 'health', hookId, ...health, openings: breaker.openings, pause };
}

function delayProbe(pause: Pause): Pause {
  return { ...pause, untilMs: pause.untilMs + NEXT_PROBE_MS };
}

/** The pause that ends last, of the hook's and of the origin's; undefined when nothing keeps the endpoint back. */
function findPause({ origins }: EndpointTable, { breaker, origin }: Endpoint, nowMs: number): Pause | undefined {
  const ofHook = describePause(breaker, nowMs, breaker.isRequestedByReceiver ? 'retry_after' : 'failures');
  const ofOrigin = describePause(origins.find(origin), nowMs, 'no_connection');
  if (ofHook === undefined || ofOrigin === undefined) return ofHook ?? ofOrigin;
  return ofHook.untilMs >= ofOrigin.untilMs ? ofHook : ofOrigin;
}

function describePause(breaker: Breaker, nowMs: number, reason: Pause['reason']): Pause | undefined {
  if (breaker.state !== 'open' || isPauseOver(breaker, nowMs)) return undefined;
  return { sinceMs: breaker.sinceMs, untilMs: breaker.untilMs, reason };
}
