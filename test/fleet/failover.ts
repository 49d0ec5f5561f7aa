/**
 * The primary of a fleet is killed under load on two processes of the service: nothing that was acknowledged may be lost,
 * nothing redeemed twice, deliveries go on soon after another server was promoted, and Predict never fails.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createServiceLoad, type LoadCounts, type LoadScale, type ServiceLoad } from '../support/load/service-load.ts';
import { startReceivers } from '../support/network/receiver.ts';
import { createDataDir } from '../support/programs/start-program.ts';
import { openTestStore } from '../support/store/engines.ts';
import { startPublishingService } from '../support/webhooks/publishing-service.ts';
import { type FleetOptions, type PatroniFleet, startPatroniFleet } from './patroni-fleet.ts';

/** The primary fails by `kill -9`, or by SIGSTOP, which leaves its connections open. */
export type Blow = 'kill' | 'freeze';

export interface FailoverOptions extends FleetOptions {
  readonly scale: LoadScale;
  readonly blows: readonly Blow[];
  readonly print: (line: string) => void;
}

export interface Failover {
  readonly blow: Blow;
  readonly node: string;
  /** From the blow until Patroni named another primary. */
  readonly promotionMs: number;
  /** From then until the new primary confirmed a commit. */
  readonly commitMs: number;
  /** From the promotion until an event was accepted. */
  readonly acceptedMs: number;
  /** From the promotion until a receiver got a delivery of an event that was accepted after it. */
  readonly deliveryMs: number;
}

export interface FailoverReport {
  readonly failovers: readonly Failover[];
  readonly counts: LoadCounts;
  readonly seconds: number;
  /** Deliveries that came more than once with the same id: their result could not be stored. */
  readonly sentAgain: number;
  /** Empty when it passed. */
  readonly failures: readonly string[];
}

export const FULL_SCALE: LoadScale = { events: 5_000, refreshes: 5_000, observations: 20_000, codes: 200 };
/** The gate runs at this scale. */
export const SHORT_SCALE: LoadScale = { events: 500, refreshes: 500, observations: 2_000, codes: 20 };

export const HOOKS = 4;
export const DELIVERY_WITHIN_MS = 15_000;
const PRINT_EVERY_MS = 5_000;
const LOOK_EVERY_MS = 20;
/** Of the log of each process, when a run fails. */
const LOG_LENGTH = 8000;
/** A run that does not come to an end names what it waits for. */
const END_WITHIN_MS = 420_000;
const KEYS = Buffer.alloc(32, 7).toString('base64');

export async function runFailover({ scale, blows, print, ...fleetOptions }: FailoverOptions): Promise<FailoverReport> {
  await using undo = new AsyncDisposableStack();
  const fleet = undo.use(await startPatroniFleet(fleetOptions));
  print(`three nodes run; DATABASE_URL=${fleet.databaseUrl}`);
  const place = { dataDir: createDataDir(), databaseUrl: fleet.databaseUrl };
  let load: ServiceLoad | undefined;
  const { urls } = undo.use(await startReceivers(HOOKS, (hook, received) => load?.receive(hook, received)));
  const environment = { SECRET_KEYS: KEYS, LOG_LEVEL: 'warn', AUTHORIZATION_CODE_SECONDS: '600' };
  const service = undo.use(await startPublishingService({ place, processes: 2, urls, environment }));
  const store = undo.use(await openTestStore(place));
  load = await createServiceLoad({ service, store, programs: service.programs, hooks: HOOKS, scale });
  print('two processes are ready');

  const startMs = performance.now();
  const running = load.run();
  const printer = setInterval(() => print(describeProgress(load!.counts)), PRINT_EVERY_MS);
  undo.defer(() => clearInterval(printer));
  undo.defer(() => load!.stop());
  const failovers: Failover[] = [];
  for (const [index, blow] of blows.entries()) {
    const share = (index + 0.5) / blows.length;
    await waitUntil(() => load!.counts.accepted >= scale.events * share * 0.8, load);
    failovers.push(await strike({ fleet, load, blow, print }));
  }
  await Promise.race([running, failAfter(END_WITHIN_MS, load)]);
  print('all was acknowledged; waiting for the last deliveries');
  await waitUntil(() => load!.counts.received >= scale.events * HOOKS, load).catch(() => {});
  load.stop();
  const failures = [...load.failures, ...(await load.findLosses(store)), ...listSlow(failovers)];
  for (const program of service.programs)
    if ((await program.stop()) !== 0) failures.push(`a process did not stop in order: ${program.log().slice(-2000)}`);
  if (failures.length > 0) for (const program of service.programs) print(`log: ${program.log().slice(-LOG_LENGTH)}`);
  const seconds = (performance.now() - startMs) / 1000;
  return { failovers, counts: load.counts, seconds, sentAgain: load.countSentAgain(), failures };
}

interface Strike {
  readonly fleet: PatroniFleet;
  readonly load: ServiceLoad;
  readonly blow: Blow;
  readonly print: (line: string) => void;
}

async function strike({ fleet, load, blow, print }: Strike): Promise<Failover> {
  await fleet.waitUntilWhole();
  const victim = await fleet.findPrimary();
  const struckMs = performance.now();
  if (blow === 'kill') fleet.killNode(victim);
  else fleet.freezeNode(victim);
  print(`${blow}: ${victim.name}, the primary`);
  const heir = await fleet.findPrimary();
  const promotedMs = performance.now();
  print(`${heir.name} is the primary after ${formatSeconds(promotedMs - struckMs)}`);
  await fleet.waitUntilCommits(heir);
  const commitMs = performance.now() - promotedMs;
  await waitUntil(() => load.firstDeliveryAfter(promotedMs) !== undefined, load);
  const acceptedMs = (load.firstAcceptedAfter(promotedMs) ?? 0) - promotedMs;
  const deliveryMs = (load.firstDeliveryAfter(promotedMs) ?? 0) - promotedMs;
  const parts = [commitMs, acceptedMs, deliveryMs].map(formatSeconds);
  print(
    `after that it confirms commits in ${parts[0]}, a new event is accepted in ${parts[1]} and delivered in ${parts[2]}`,
  );
  if (blow === 'kill') fleet.startNode(victim);
  else fleet.thawNode(victim);
  return { blow, node: victim.name, promotionMs: promotedMs - struckMs, commitMs, acceptedMs, deliveryMs };
}

function listSlow(failovers: readonly Failover[]): string[] {
  return failovers
    .filter(({ deliveryMs }) => deliveryMs > DELIVERY_WITHIN_MS)
    .map(
      ({ node, deliveryMs }) => `deliveries went on ${formatSeconds(deliveryMs)} after the place of ${node} was taken`,
    );
}

async function waitUntil(holds: () => boolean, load: ServiceLoad): Promise<void> {
  const endMs = performance.now() + END_WITHIN_MS;
  while (!holds()) {
    if (load.failures.length > 0) return;
    if (performance.now() > endMs) throw new Error(`It did not come to an end: ${describeProgress(load.counts)}`);
    // The counts of the load have no event.
    await sleep(LOOK_EVERY_MS);
  }
}

async function failAfter(ms: number, load: ServiceLoad): Promise<never> {
  // A time limit.
  await sleep(ms, undefined, { ref: false });
  throw new Error(`It did not come to an end: ${describeProgress(load.counts)}`);
}

function describeProgress(counts: LoadCounts): string {
  const { accepted, received, refreshed, exchanged, observed, predicted } = counts;
  const repeated = [...counts.repeated].map(([what, count]) => `${what} × ${count}`).join(', ');
  return (
    `events ${accepted}, deliveries ${received}, refreshes ${refreshed}, codes ${exchanged}, ` +
    `observations ${observed}, predictions ${predicted}; sent again: ${repeated || 'none'}`
  );
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
