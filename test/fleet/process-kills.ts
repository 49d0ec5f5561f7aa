/**
 * `npm run test:fleet:processes`, with `-- --kills 10`, `--rate 200`, `--processes 3`: several processes of the service on one
 * PostgreSQL get events at a steady rate; one after the other is killed with `kill -9` and started again. Counts the deliveries that
 * were lost and those that came twice. Ends soon when the service does not recover. Needs Debian's postgresql.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { readBenchFlags } from '../../bench/support/bench-flags.ts';
import { type ReceivedRequest, startReceivers } from '../support/network/receiver.ts';
import { createDataDir, type Program, startProgram } from '../support/programs/start-program.ts';
import { createTestDatabase, startPostgresCluster } from '../support/store/postgres-cluster.ts';
import {
  numberedPush,
  type PublishingService,
  startPublishingService,
} from '../support/webhooks/publishing-service.ts';

const { values } = readBenchFlags({
  options: {
    kills: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    processes: { type: 'string', default: '3' },
  },
});

if (!(Number(values.processes) >= 2))
  throw new Error('--processes must be at least 2: one takes the calls while another is killed');

/** Each has a webhook at a receiver of its own, so that every process has some of them. */
const REPOSITORIES = 24;
const RETRY_MS = 100;
const CALL_TIMEOUT_MS = 30_000;
const LOOK_EVERY_MS = 20;
/** For an event to be accepted, and for those that were accepted before a moment to be delivered. */
const RECOVERED_WITHIN_MS = 180_000;
/** What a sender sends again: 408 is the answer to a call that a stop or an outage has made too late. */
const PASSING_STATUSES = [408, 503];
/** A process has sent no more deliveries without a stored result, and each of them may come again. */
const MAX_TWICE_PER_KILL = 256;
/** Before the first kill, and after the last delivery: a second one would come within the length of a lease. */
const QUIET_MS = 20_000;

interface Scene {
  readonly service: PublishingService;
  /** Those that take calls now. */
  readonly programs: Program[];
  readonly acceptedAtMs: Map<number, number>;
  /** By the number of the event, the id of each delivery that came. */
  readonly received: Map<number, string[]>;
  readonly repeated: Map<string, number>;
  /** Any failure ends the run. */
  readonly failures: string[];
  lastReceivedMs: number;
}

function print(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
}

function receive(scene: Scene, { headers, body }: ReceivedRequest): void {
  const { after } = JSON.parse(body.toString('utf8')) as { after: string };
  const number = Number.parseInt(after, 16);
  const uuids = scene.received.get(number) ?? [];
  uuids.push(String(headers['x-gitcode-delivery']));
  scene.received.set(number, uuids);
  scene.lastReceivedMs = performance.now();
}

/** Sends an event that was not answered again, to another process, with its key, as a sender does. */
async function sendEvent(scene: Scene, number: number): Promise<void> {
  const headers = {
    authorization: `Bearer ${scene.service.token}`,
    'content-type': 'application/json',
    'idempotency-key': `event-${number}`,
  };
  const startMs = performance.now();
  for (let tries = 0; scene.failures.length === 0; tries += 1) {
    const program = scene.programs[(number + tries) % scene.programs.length]!;
    const answer = await fetch(`${program.httpUrl}/api/v5/repos/grace/r${number % REPOSITORIES}/events`, {
      method: 'POST',
      headers,
      body: JSON.stringify(numberedPush(number)),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    }).catch((error: unknown) => String((error as { cause?: { code?: string } }).cause?.code ?? error));
    if (typeof answer !== 'string' && answer.ok) {
      await answer.body?.cancel();
      return void scene.acceptedAtMs.set(number, performance.now());
    }
    const what = typeof answer === 'string' ? answer : String(answer.status);
    const text = typeof answer === 'string' ? '' : await answer.text().catch(() => '');
    if (typeof answer !== 'string' && !PASSING_STATUSES.includes(answer.status))
      return void scene.failures.push(`event ${number} was refused: ${what} ${text}`);
    if (performance.now() - startMs > RECOVERED_WITHIN_MS)
      return void scene.failures.push(
        `event ${number} was not accepted within ${RECOVERED_WITHIN_MS / 1000} s; the last of ${tries + 1} answers: ${what} ${text}`,
      );
    scene.repeated.set(what, (scene.repeated.get(what) ?? 0) + 1);
    // As senders do between two tries: nothing tells them when the service is back.
    await sleep(RETRY_MS);
  }
}

/** Sends at a steady rate, however long the calls take. Resolves when all were accepted. */
async function sendSteadily(scene: Scene, rate: number, isEnding: AbortSignal): Promise<void> {
  const calls = new Set<Promise<void>>();
  const startMs = performance.now();
  for (let sent = 0; !isEnding.aborted && scene.failures.length === 0; ) {
    for (; sent < ((performance.now() - startMs) * rate) / 1000; sent += 1) {
      const call = sendEvent(scene, sent + 1).finally(() => calls.delete(call));
      calls.add(call);
    }
    // The rate is by the clock.
    await sleep(LOOK_EVERY_MS);
  }
  await Promise.all(calls);
}

function listMissing({ acceptedAtMs, received }: Scene): number[] {
  return [...acceptedAtMs.keys()].filter((number) => !received.has(number));
}

/** Waits until each event that was accepted before this moment has been delivered. Resolves with the seconds that it took. */
async function waitUntilCaughtUp(scene: Scene): Promise<number> {
  const startMs = performance.now();
  let missing = listMissing(scene);
  while (missing.length > 0 && scene.failures.length === 0) {
    if (performance.now() - startMs > RECOVERED_WITHIN_MS)
      scene.failures.push(
        `${missing.length} accepted events were not delivered within ${RECOVERED_WITHIN_MS / 1000} s`,
      );
    missing = missing.filter((number) => !scene.received.has(number));
    // The receivers count; they have no event.
    await sleep(LOOK_EVERY_MS);
  }
  return (performance.now() - startMs) / 1000;
}

/** Deliveries that came more than once, and events that came under more than one id. */
function countTwice({ received }: Scene): { readonly deliveries: number; readonly events: number } {
  const all = [...received.values()];
  return {
    deliveries: all.reduce((sum, uuids) => sum + uuids.length - new Set(uuids).size, 0),
    events: all.filter((uuids) => new Set(uuids).size > 1).length,
  };
}

async function killOne(scene: Scene, turn: number): Promise<void> {
  const index = turn % scene.programs.length;
  const victim = scene.programs[index]!;
  const before = countTwice(scene).deliveries;
  const open = listMissing(scene).length;
  await victim.kill();
  const killedMs = performance.now();
  scene.programs.splice(index, 1);
  const [seconds, heir] = await Promise.all([waitUntilCaughtUp(scene), startProgram(scene.service.environment)]);
  scene.programs.splice(index, 0, heir);
  const twice = countTwice(scene).deliveries - before;
  const total = ((performance.now() - killedMs) / 1000).toFixed(1);
  print(
    `kill ${turn + 1}: ${open} events waited, all accepted before came within ${seconds.toFixed(1)} s, ` +
      `${twice} twice; ${total} s until the next kill; ${scene.acceptedAtMs.size} events accepted so far`,
  );
}

await using undo = new AsyncDisposableStack();
const cluster = await startPostgresCluster();
undo.defer(() => cluster.stop());
const place = { dataDir: createDataDir(), databaseUrl: await createTestDatabase(cluster.socketDir, 'kills') };
let scene: Scene | undefined;
const { urls } = undo.use(await startReceivers(REPOSITORIES, (_, request) => scene && receive(scene, request)));
const environment = { LOG_LEVEL: 'warn' };
const service = undo.use(
  await startPublishingService({ place, processes: Number(values.processes), urls: [], environment }),
);
for (const [index, url] of urls.entries()) {
  await service.call('POST', '/api/v5/user/repos', { name: `r${index}` });
  await service.call('POST', `/api/v5/repos/grace/r${index}/hooks`, { url, password: 'key' });
}
scene = {
  service,
  programs: [...service.programs],
  acceptedAtMs: new Map(),
  received: new Map(),
  repeated: new Map(),
  failures: [],
  lastReceivedMs: 0,
};
undo.defer(async () => void (await Promise.all(scene!.programs.map((program) => program.kill()))));
print(`${values.processes} processes are ready`);

const ending = new AbortController();
const sending = sendSteadily(scene, Number(values.rate), ending.signal);
// Every process has its part of the receivers by then.
await sleep(QUIET_MS);
const kills = Number(values.kills);
for (let turn = 0; turn < kills && scene.failures.length === 0; turn += 1) await killOne(scene, turn);
ending.abort();
await sending;
await waitUntilCaughtUp(scene);
// What may still come a second time.
while (scene.failures.length === 0 && performance.now() - scene.lastReceivedMs < QUIET_MS) await sleep(RETRY_MS);
const lost = listMissing(scene);
const twice = countTwice(scene);
const repeated = [...scene.repeated].map(([what, count]) => `${what} × ${count}`).join(', ');
for (const failure of scene.failures.slice(0, 20)) print(`FAILED: ${failure}`);
print(
  `${kills} kills at ${values.rate} events/s: ${scene.acceptedAtMs.size} accepted, ${lost.length} lost, ` +
    `${twice.deliveries} deliveries twice, ${twice.events} events under two ids, ${scene.failures.length} failures; sent again: ${repeated || 'none'}`,
);
const codes = await Promise.all(scene.programs.map((program) => program.stop()));
print(`the processes ended with ${codes.join(', ')}`);
const isGood =
  lost.length + twice.events + scene.failures.length === 0 &&
  twice.deliveries <= MAX_TWICE_PER_KILL * kills &&
  codes.every((code) => code === 0);
process.exitCode = isGood ? 0 : 1;
