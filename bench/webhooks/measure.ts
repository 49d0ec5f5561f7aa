/** The measurements themselves; each with new processes and an empty queue. */
import { readPeakRssMb, resetPeakRss } from '../support/peak-memory.ts';
import { countMissing, findArrival, listFirstArrivals, takePercentile } from './arrivals.ts';
import type { BenchHook, BenchJob } from './engine.ts';
import type { Place } from './places.ts';
import { createHooks, readCpuMs, startEngine, startReceiver } from './processes.ts';
import { readUuids, seedBacklog } from './seed-backlog.ts';

const BODY = JSON.stringify({ text: 'x'.repeat(2038) });
const SLOW_MS = 2000;
/** The time in which the engine finds out which endpoints are dead. */
const SETTLE_DOWN_MS = 10_000;

export interface DrainFigures {
  readonly seconds: number;
  /** For one delivery: the engine, and the server that keeps its queue. */
  readonly engineMicros: number;
  readonly databaseMicros: number;
  readonly receiverMicros: number;
  readonly repeated: number;
  readonly missing: number;
  readonly peakRssMb: number;
}

/** From the start of the engine to the arrival of the last delivery to a healthy endpoint. */
export async function measureDrain(place: Place, healthy: number, slow: number): Promise<DrainFigures> {
  const receiver = await startReceiver({ slowMs: SLOW_MS });
  const slowPort = String(receiver.ports.at(-1));
  const hooks = createHooks(receiver.ports);
  const engine = await startEngine(place, hooks);
  const [slowHooks, healthyHooks] = partition(hooks, (hook) => new URL(hook.url).port === slowPort);
  // The slow endpoints first: a sender without fairness is stuck behind them.
  await engine.ask({ kind: 'enqueue', jobs: [...createJobs(slowHooks, slow), ...createJobs(healthyHooks, healthy)] });
  const readMicros = startStopwatch([engine.pid, place.databasePid, receiver.pid]);
  resetPeakRss(engine.pid);
  const startMs = performance.timeOrigin + performance.now();
  await engine.ask({ kind: 'start' });
  await receiver.waitFor(healthy);
  const [engineMicros = 0, databaseMicros = 0, receiverMicros = 0] = readMicros(healthy);
  const arrived = (await receiver.report()).filter((arrival) => !arrival.isSlow);
  const firstArrivals = listFirstArrivals(arrived);
  const peakRssMb = readPeakRssMb(engine.pid) ?? Number.NaN;
  await engine.stop();
  receiver.stop();
  return {
    seconds: (Math.max(...firstArrivals.values()) - startMs) / 1000,
    engineMicros,
    databaseMicros,
    receiverMicros,
    repeated: arrived.length - firstArrivals.size,
    missing: healthy - firstArrivals.size,
    peakRssMb,
  };
}

/** Microseconds of processor time since now, for one of `count`, of each process. */
function startStopwatch(pids: readonly number[]): (count: number) => number[] {
  const startMs = pids.map(readCpuMs);
  return (count) => pids.map((pid, index) => Math.round(((readCpuMs(pid) - startMs[index]!) * 1000) / count));
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  return [items.filter(test), items.filter((item) => !test(item))];
}

function createJobs(hooks: readonly BenchHook[], count: number): BenchJob[] {
  return Array.from({ length: count }, (_, index) => ({ hook: hooks[index % hooks.length]!, body: BODY }));
}

export interface SteadyOptions {
  readonly perSecond: number;
  readonly seconds: number;
  /** Deliveries that wait all the time, for a thousand endpoints of which 300 are dead. */
  readonly pending: number;
}

export interface SteadyFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Deliveries that never arrived; their times count as infinite. */
  readonly missing: number;
  /** For one delivery, its enqueue included. */
  readonly engineMicros: number;
  readonly databaseMicros: number;
  readonly peakRssMb: number;
}

const HEALTHY_BESIDE_BACKLOG = 700;

/** From the commit of a delivery to its arrival. */
export async function measureSteady(place: Place, options: SteadyOptions): Promise<SteadyFigures> {
  const { perSecond, seconds, pending } = options;
  const receiver = await startReceiver();
  const hooks =
    pending > 0 ? createHooks(receiver.ports, 42).slice(0, HEALTHY_BESIDE_BACKLOG) : createHooks(receiver.ports);
  const engine = await startEngine(place, hooks);
  if (pending > 0) await seedBacklog(place.options, hooks, pending);
  await engine.ask({ kind: 'start' });
  if (pending > 0) await new Promise((resolve) => setTimeout(resolve, SETTLE_DOWN_MS));
  resetPeakRss(engine.pid);
  const readMicros = startStopwatch([engine.pid, place.databasePid]);
  const committed = (await engine.ask({ kind: 'steady', perSecond, seconds, body: BODY })) as [number, number][];
  await receiver.waitFor(perSecond * seconds);
  const [engineMicros = 0, databaseMicros = 0] = readMicros(perSecond * seconds);
  const peakRssMb = readPeakRssMb(engine.pid) ?? Number.NaN;
  const arrivals = await receiver.report();
  await engine.stop();
  receiver.stop();
  const uuids = await readUuids(place.options, committed);
  const arrivedAt = listFirstArrivals(arrivals);
  const delays = committed.map(([id, atMs]) => findArrival(arrivedAt, uuids.get(id)) - atMs);
  return { ...summarize(delays), engineMicros, databaseMicros, peakRssMb };
}

function summarize(delays: number[]) {
  const [p50Ms = 0, p99Ms = 0, maxMs = 0] = [0.5, 0.99, 1].map((share) => takePercentile(delays, share));
  return { p50Ms, p99Ms, maxMs, missing: countMissing(delays) };
}
