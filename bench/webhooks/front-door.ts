/**
 * Steady load through the front door: the real program, events over HTTP with a real token, and receivers over HTTP. The
 * same events are first sent to repositories without webhooks, so that the cost of a delivery is separate from that of its event.
 */
import { Pool } from 'undici';
import {
  type AnnouncingPrograms,
  numberedPush,
  startAnnouncingPrograms,
} from '../../test/support/announcing-programs.ts';
import { round } from './measure.ts';
import { type EngineTitle, withPlace } from './places.ts';
import { type Receiver, readCpuMs, readRssMb, startReceiver } from './processes.ts';

const REPOSITORIES = 16;
const CONNECTIONS = 64;
/** Code that has never run is slow; that is not to be measured. */
const WARM_UP_SECONDS = 3;

export interface FrontDoorOptions {
  readonly perSecond: number;
  readonly seconds: number;
}

export interface FrontDoorFigures {
  readonly refused: number;
  /** From the post of an event to the arrival of its delivery. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** From the answer to the post, when the event is committed, to the arrival; 0 where the delivery was first. */
  readonly afterAnswerP99Ms: number;
  /** Processor time of the program for an event without a delivery, and what its delivery adds. */
  readonly eventMicros: number;
  readonly deliveryMicros: number;
  readonly databaseMicros: number;
  /** Processor time in a second without events. */
  readonly restMicros: number;
  readonly rssMb: number;
}

export async function measureFrontDoor(engine: EngineTitle, options: FrontDoorOptions): Promise<FrontDoorFigures> {
  return await withPlace(engine, async ({ options: { dataDir, databaseUrl }, databasePid }) => {
    const receiver = await startReceiver();
    const place = { dataDir, databaseUrl };
    await using announcing = await startAnnouncingPrograms({ place, processes: 1, urls: [] });
    const pid = announcing.programs[0]!.pid;
    const [bare, hooked] = await createRepositories(announcing, receiver);
    await post(announcing, hooked, { ...options, seconds: WARM_UP_SECONDS });
    const atRest = await measureCpu([pid], () => new Promise((resolve) => setTimeout(resolve, 3000)));
    const events = await measureCpu([pid], () => post(announcing, bare, options));
    const deliveries = await measureCpu([pid, databasePid], async () => {
      const posts = await post(announcing, hooked, options);
      await receiver.waitFor(options.perSecond * WARM_UP_SECONDS + posts.length);
      return posts;
    });
    const arrivals = new Map((await receiver.report()).map(({ uuid, atMs }) => [uuid, atMs]));
    receiver.stop();
    const rssMb = readRssMb(pid);
    const count = options.perSecond * options.seconds;
    const perEvent = (ms = 0) => Math.round((ms * 1000) / count);
    return {
      ...summarize(deliveries.result, arrivals),
      refused: count - deliveries.result.length,
      eventMicros: perEvent(events.cpuMs[0]),
      deliveryMicros: perEvent(deliveries.cpuMs[0]) - perEvent(events.cpuMs[0]),
      databaseMicros: perEvent(deliveries.cpuMs[1]),
      restMicros: Math.round((atRest.cpuMs[0]! * 1000) / 3),
      rssMb,
    };
  });
}

/** Paths for events: of repositories without a webhook, and of repositories with one each. */
async function createRepositories(announcing: AnnouncingPrograms, receiver: Receiver): Promise<[string[], string[]]> {
  const bare: string[] = [];
  const hooked: string[] = [];
  for (const [index, port] of receiver.ports.slice(0, REPOSITORIES).entries()) {
    for (const [paths, name] of [
      [bare, `bare-${index}`],
      [hooked, `hooked-${index}`],
    ] as const) {
      await announcing.call('POST', '/api/v5/user/repos', { name });
      paths.push(`/api/v5/repos/grace/${name}`);
    }
    await announcing.call('POST', `${hooked.at(-1)}/hooks`, { url: `http://127.0.0.1:${port}/`, password: 'key' });
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
  { programs, token }: AnnouncingPrograms,
  paths: readonly string[],
  { perSecond, seconds }: FrontDoorOptions,
): Promise<Post[]> {
  const pool = new Pool(programs[0]!.httpUrl, { connections: CONNECTIONS });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const accepted: Post[] = [];
  const postOne = async (number: number): Promise<void> => {
    const body = JSON.stringify(numberedPush(number));
    const postedAtMs = readClock();
    const path = paths[number % paths.length]!;
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
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(waiting);
  await pool.close();
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
