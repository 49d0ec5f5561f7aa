/**
 * Steady load over HTTP: real programs, events with a real token, and receivers. In a turn, some seconds of events to repositories
 * with one webhook each lie between two periods of events to repositories without webhooks. This separates the cost of a delivery
 * from that of its event, and a change of the machine or of the process during a turn affects both. Programs of several checkouts
 * and the floor take turns.
 */
import { getPriority, setPriority } from 'node:os';
import { readPeakRssMb, resetPeakRss } from '../support/peak-memory.ts';
import { countMissing, findArrival, listFirstArrivals, takePercentile } from './arrivals.ts';
import { createEventSender, type Post } from './event-sender.ts';
import { openTarget, type Target, type TargetPlace } from './front-door-targets.ts';
import { type MachineFigures, watchMachine } from './machine.ts';
import type { EngineTitle } from './places.ts';
import { readCpuMs } from './processes.ts';

/** A warm-up: code that has never run is slow, and so are the first runs of a statement on a connection. */
const WARM_UP_SECONDS = 6;
/** Before those with deliveries, and again after them. */
const BARE_SECONDS = 1;
const HOOKED_SECONDS = 4;

/** After the events, until their results are stored. */
export const SETTLE_MS = 400;
const REST_SECONDS = 3;

/** The sender and the receivers represent other machines, so they must not wait for the measured processes. */
const PRIORITY_OF_OTHERS = -10;

export interface FrontDoorOptions {
  readonly perSecond: number;
  /** Of events with deliveries; a turn has a few of them. */
  readonly seconds: number;
  /** Each gets an equal part of the events. */
  readonly processes: number;
}

export interface FrontDoorFigures extends MachineFigures {
  readonly refused: number;
  /** Deliveries of accepted events that never arrived; their times count as infinite. */
  readonly missing: number;
  /** From the post of an event to the arrival of its delivery. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** From the answer to the post, when the event is committed, to the arrival; 0 where the delivery arrived first. */
  readonly afterAnswerP50Ms: number;
  readonly afterAnswerP99Ms: number;
  /** The same for the first second of each turn, after seconds without deliveries; the figures above leave it out. */
  readonly firstSecondP99Ms: number;
  /** Processor time of the programs for an event without a delivery, and what its delivery adds, with the standard error. */
  readonly eventMicros: number;
  readonly deliveryMicros: number;
  readonly deliveryError: number;
  readonly databaseMicros: number;
  /** Processor time in a second without events. */
  readonly restMicros: number;
  /** Since the warm-up. */
  readonly peakRssMb: number;
}

/** Figures of each of the places. All of them run at once, and take turns. */
export async function measureFrontDoors(
  engine: EngineTitle,
  options: FrontDoorOptions,
  places: readonly TargetPlace[],
): Promise<FrontDoorFigures[]> {
  await using opened = new AsyncDisposableStack();
  const targets: Target[] = [];
  for (const place of places) targets.push(opened.use(await openTarget(engine, options.processes, place)));
  using _first = goFirst(targets);
  const doors: FrontDoor[] = [];
  for (const target of targets) doors.push(await warmUp(target, options));
  const machine = watchMachine();
  for (let turn = 0; turn < options.seconds / HOOKED_SECONDS; turn += 1)
    // The order is reversed each turn: the first of a turn is the last of the next.
    for (const door of turn % 2 === 0 ? doors : doors.toReversed()) {
      machine.timeLoop();
      await door.takeTurn();
    }
  const ofMachine = machine.read();
  const figures: FrontDoorFigures[] = [];
  for (const door of doors) figures.push({ ...(await door.finish()), ...ofMachine });
  return figures;
}

/** Gives this process and the receivers a higher priority, if it has the permission. */
function goFirst(targets: readonly Target[]): Disposable {
  const pids = [process.pid, ...targets.map(({ receiver }) => receiver.pid)];
  const before = getPriority();
  try {
    for (const pid of pids) setPriority(pid, PRIORITY_OF_OTHERS);
  } catch {
    process.stderr.write(
      'The sender and the receivers have the priority of the program: run as root to give them a higher one\n',
    );
  }
  return {
    [Symbol.dispose]: () => {
      if (getPriority() !== before) setPriority(before);
    },
  };
}

interface FrontDoor {
  /** Events without deliveries, with, and without. */
  takeTurn(): Promise<void>;
  finish(): Promise<Omit<FrontDoorFigures, keyof MachineFigures>>;
}

async function warmUp(target: Target, { perSecond }: FrontDoorOptions): Promise<FrontDoor> {
  const { pids, databasePid, receiver, bare, hooked } = target;
  const sender = createEventSender(target.urls, target.token);
  const warmUps = await sender.post(hooked, perSecond, WARM_UP_SECONDS);
  await sender.post(bare, perSecond, 1);
  await sleep(SETTLE_MS);
  const rest = await measureCpu(pids, () => sleep(REST_SECONDS * 1000));
  const turns: Turn[] = [];
  for (const pid of pids) resetPeakRss(pid);
  const postAndSettle = async (paths: readonly string[], secondsOfPaths: number) => {
    const posts = await sender.post(paths, perSecond, secondsOfPaths);
    await sleep(SETTLE_MS);
    return posts;
  };
  return {
    takeTurn: async () => {
      const before = await measureCpu(pids, () => postAndSettle(bare, BARE_SECONDS));
      const deliveries = await measureCpu([...pids, databasePid], () => postAndSettle(hooked, HOOKED_SECONDS));
      const after = await measureCpu(pids, () => postAndSettle(bare, BARE_SECONDS));
      turns.push({ before, deliveries, after });
    },
    finish: async () => {
      const posts = turns.flatMap(({ deliveries }) => deliveries.result);
      await receiver.waitFor(warmUps.length + posts.length);
      const arrivals = listFirstArrivals(await receiver.report());
      await sender.close();
      return {
        ...summarizeTimes(posts, arrivals),
        refused: perSecond * HOOKED_SECONDS * turns.length - posts.length,
        ...summarizeCpu(turns, perSecond, pids.length),
        restMicros: Math.round((add(rest.cpuMs) * 1000) / REST_SECONDS),
        peakRssMb: add(pids.map((pid) => readPeakRssMb(pid) ?? Number.NaN)),
      };
    },
  };
}

interface Turn {
  readonly before: Measured;
  readonly deliveries: Measured;
  readonly after: Measured;
}

interface Measured {
  readonly result: Post[];
  readonly cpuMs: readonly number[];
}

function summarizeCpu(turns: readonly Turn[], perSecond: number, processes: number) {
  const perEvent = (ms: number, seconds: number) => (ms * 1000) / perSecond / seconds;
  const events = turns.map(({ before, after }) => perEvent(add(before.cpuMs) + add(after.cpuMs), 2 * BARE_SECONDS));
  const both = turns.map(({ deliveries: { cpuMs } }) => perEvent(add(cpuMs.slice(0, processes)), HOOKED_SECONDS));
  const differences = both.map((micros, index) => micros - events[index]!);
  const mean = average(differences);
  const variance = add(differences.map((one) => (one - mean) ** 2)) / Math.max(1, differences.length - 1);
  return {
    eventMicros: Math.round(average(events)),
    deliveryMicros: Math.round(mean),
    deliveryError: Math.round(Math.sqrt(variance / differences.length)),
    databaseMicros: Math.round(
      average(turns.map(({ deliveries: { cpuMs } }) => perEvent(cpuMs.at(-1)!, HOOKED_SECONDS))),
    ),
  };
}

function add(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function average(values: readonly number[]): number {
  return add(values) / values.length;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function measureCpu<T>(pids: readonly number[], work: () => Promise<T>) {
  const before = pids.map(readCpuMs);
  const result = await work();
  return { result, cpuMs: pids.map((pid, index) => readCpuMs(pid) - before[index]!) };
}

function summarizeTimes(posts: readonly Post[], arrivals: ReadonlyMap<string, number>) {
  const arrivedAt = ({ uuid }: Post) => findArrival(arrivals, uuid);
  const afterAnswer = (one: Post) => Math.max(0, arrivedAt(one) - one.answeredAtMs);
  const steady = posts.filter(({ sinceStartMs }) => sinceStartMs >= 1000);
  const first = posts.filter(({ sinceStartMs }) => sinceStartMs < 1000);
  const sincePost = steady.map((one) => arrivedAt(one) - one.postedAtMs);
  const sinceAnswer = steady.map(afterAnswer);
  return {
    missing: countMissing(posts.map(arrivedAt)),
    p50Ms: takePercentile(sincePost, 0.5),
    p99Ms: takePercentile(sincePost, 0.99),
    afterAnswerP50Ms: takePercentile(sinceAnswer, 0.5),
    afterAnswerP99Ms: takePercentile(sinceAnswer, 0.99),
    firstSecondP99Ms: takePercentile(first.map(afterAnswer), 0.99),
  };
}
