/**
 * Steady load through the front door: real programs, events over HTTP with a real token, and receivers over HTTP. Seconds with
 * events to repositories without webhooks and seconds with events to repositories with one each take turns, so that the cost of a
 * delivery is separate from that of its event, and both are of the same minutes of a machine and of a process.
 */
import { Pool } from 'undici';
import { numberedPush, type PublishingService, startPublishingService } from '../../test/support/publishing-service.ts';
import { round } from './measure.ts';
import { type EngineTitle, openPlace } from './places.ts';
import { type Receiver, readCpuMs, readRssMb, startReceiver } from './processes.ts';

const REPOSITORIES = 16;
const CONNECTIONS = 64;
/** Code that has never run is slow; that is not to be measured. */
const WARM_UP_SECONDS = 3;

/** After the events of a second, until their results are stored. */
const SETTLE_MS = 400;

export interface FrontDoorOptions {
  readonly perSecond: number;
  readonly seconds: number;
  /** Each gets an equal part of the events. */
  readonly processes: number;
}

export interface FrontDoorFigures {
  readonly refused: number;
  /** From the post of an event to the arrival of its delivery. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** From the answer to the post, when the event is committed, to the arrival; 0 where the delivery was first. */
  readonly afterAnswerP99Ms: number;
  /** Processor time of the programs for an event without a delivery, and what its delivery adds, with the standard error. */
  readonly eventMicros: number;
  readonly deliveryMicros: number;
  readonly deliveryError: number;
  readonly databaseMicros: number;
  /** Processor time in a second without events. */
  readonly restMicros: number;
  readonly rssMb: number;
}

/** Figures of the programs of each folder. All of them run at once, and take turns every second. */
export async function measureFrontDoors(
  engine: EngineTitle,
  options: FrontDoorOptions,
  folders: readonly string[],
): Promise<FrontDoorFigures[]> {
  await using doors = new AsyncDisposableStack();
  const open: FrontDoor[] = [];
  for (const folder of folders) open.push(doors.use(await openFrontDoor(engine, options, folder)));
  for (let count = 0; count < options.seconds; count += 1)
    // The first of a second is the last of the next.
    for (const door of count % 2 === 0 ? open : open.toReversed()) await door.measureSecond();
  const figures: FrontDoorFigures[] = [];
  for (const door of open) figures.push(await door.finish());
  return figures;
}

interface FrontDoor extends AsyncDisposable {
  /** Events without deliveries for a second, and then with. */
  measureSecond(): Promise<void>;
  finish(): Promise<FrontDoorFigures>;
}

async function openFrontDoor(engine: EngineTitle, options: FrontDoorOptions, folder: string): Promise<FrontDoor> {
  await using undo = new AsyncDisposableStack();
  const {
    options: { dataDir, databaseUrl },
    databasePid,
    stop,
  } = await openPlace(engine);
  undo.defer(stop);
  const place = { dataDir, databaseUrl };
  const receiver = await startReceiver();
  undo.defer(() => receiver.stop());
  const service = undo.use(await startPublishingService({ place, processes: options.processes, urls: [], folder }));
  const pids = service.programs.map(({ pid }) => pid);
  const [bare, hooked] = await createRepositories(service, receiver);
  await post(service, hooked, { ...options, seconds: WARM_UP_SECONDS });
  await post(service, bare, { ...options, seconds: 1 });
  await sleep(SETTLE_MS);
  const atRest = await measureCpu(pids, () => sleep(3000));
  const slices: Slice[] = [];
  const postSecond = (paths: readonly string[]) => postAndSettle(service, paths, { ...options, seconds: 1 });
  const owned = undo.move();
  return {
    measureSecond: async () => {
      const events = await measureCpu(pids, () => postSecond(bare));
      const deliveries = await measureCpu([...pids, databasePid], () => postSecond(hooked));
      slices.push({ events, deliveries });
    },
    finish: async () => {
      const posts = slices.flatMap(({ deliveries }) => deliveries.result);
      await receiver.waitFor(options.perSecond * WARM_UP_SECONDS + posts.length);
      const arrivals = new Map((await receiver.report()).map(({ uuid, atMs }) => [uuid, atMs]));
      return {
        ...summarize(posts, arrivals),
        refused: options.perSecond * options.seconds - posts.length,
        ...summarizeCpu(slices, options),
        restMicros: Math.round((add(atRest.cpuMs) * 1000) / 3),
        rssMb: add(pids.map(readRssMb)),
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function postAndSettle(...parameters: Parameters<typeof post>): Promise<Post[]> {
  const posts = await post(...parameters);
  await sleep(SETTLE_MS);
  return posts;
}

interface Slice {
  /** A second with events without deliveries, and the one after it with deliveries. */
  readonly events: Measured;
  readonly deliveries: Measured;
}

interface Measured {
  readonly result: Post[];
  readonly cpuMs: readonly number[];
}

function summarizeCpu(slices: readonly Slice[], { perSecond, processes }: FrontDoorOptions) {
  const perEvent = (ms: number) => (ms * 1000) / perSecond;
  const events = slices.map(({ events: { cpuMs } }) => perEvent(add(cpuMs)));
  const both = slices.map(({ deliveries: { cpuMs } }) => perEvent(add(cpuMs.slice(0, processes))));
  const differences = both.map((micros, index) => micros - events[index]!);
  const mean = average(differences);
  const variance = add(differences.map((one) => (one - mean) ** 2)) / Math.max(1, differences.length - 1);
  return {
    eventMicros: Math.round(average(events)),
    deliveryMicros: Math.round(mean),
    deliveryError: Math.round(Math.sqrt(variance / differences.length)),
    databaseMicros: Math.round(average(slices.map(({ deliveries: { cpuMs } }) => perEvent(cpuMs.at(-1)!)))),
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

/** Paths for events: of repositories without a webhook, and of repositories with one each. */
async function createRepositories(service: PublishingService, receiver: Receiver): Promise<[string[], string[]]> {
  const bare: string[] = [];
  const hooked: string[] = [];
  for (const [index, port] of receiver.ports.slice(0, REPOSITORIES).entries()) {
    for (const [paths, name] of [
      [bare, `bare-${index}`],
      [hooked, `hooked-${index}`],
    ] as const) {
      await service.call('POST', '/api/v5/user/repos', { name });
      paths.push(`/api/v5/repos/grace/${name}`);
    }
    await service.call('POST', `${hooked.at(-1)}/hooks`, { url: `http://127.0.0.1:${port}/`, password: 'key' });
  }
  return [bare.map((path) => `${path}/events`), hooked.map((path) => `${path}/events`)];
}

interface Post {
  readonly uuid: string | undefined;
  readonly postedAtMs: number;
  readonly answeredAtMs: number;
}

/** Posts at a fixed rate, whatever the answers take. Returns the accepted posts. */
async function post(
  { programs, token }: PublishingService,
  paths: readonly string[],
  { perSecond, seconds }: FrontDoorOptions,
): Promise<Post[]> {
  const pools = programs.map(({ httpUrl }) => new Pool(httpUrl, { connections: CONNECTIONS / programs.length }));
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const accepted: Post[] = [];
  const postOne = async (number: number): Promise<void> => {
    const body = JSON.stringify(numberedPush(number));
    const postedAtMs = readClock();
    const path = paths[number % paths.length]!;
    // Events of one repository go to each process in turn.
    const pool = pools[Math.floor(number / paths.length) % pools.length]!;
    const response = await pool.request({ method: 'POST', path, headers, body });
    const answer = (await response.body.json()) as { deliveries?: { uuid: string }[] };
    if (response.statusCode === 202)
      accepted.push({ uuid: answer.deliveries?.[0]?.uuid, postedAtMs, answeredAtMs: readClock() });
  };
  const waiting: Promise<void>[] = [];
  const startMs = performance.now();
  while (waiting.length < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, Math.ceil(((performance.now() - startMs) / 1000) * perSecond));
    while (waiting.length < due) waiting.push(postOne(waiting.length));
    await sleep(1);
  }
  await Promise.all(waiting);
  await Promise.all(pools.map((pool) => pool.close()));
  return accepted;
}

function readClock(): number {
  return performance.timeOrigin + performance.now();
}

async function measureCpu<T>(pids: readonly number[], work: () => Promise<T>) {
  const before = pids.map(readCpuMs);
  const result = await work();
  return { result, cpuMs: pids.map((pid, index) => readCpuMs(pid) - before[index]!) };
}

function summarize(posts: readonly Post[], arrivals: ReadonlyMap<string, number>) {
  const arrivedAt = ({ uuid }: Post) => arrivals.get(uuid ?? '') ?? Number.NaN;
  const delays = posts.map((one) => arrivedAt(one) - one.postedAtMs).sort((a, b) => a - b);
  const afterAnswer = posts.map((one) => Math.max(0, arrivedAt(one) - one.answeredAtMs)).sort((a, b) => a - b);
  const at = (sorted: readonly number[], share: number) =>
    round(sorted[Math.floor(sorted.length * share)] ?? Number.NaN);
  return { p50Ms: at(delays, 0.5), p99Ms: at(delays, 0.99), afterAnswerP99Ms: at(afterAnswer, 0.99) };
}
