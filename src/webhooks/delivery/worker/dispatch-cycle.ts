/**
 * Runs one dispatch cycle in four stages: scan, admit, pick, send. The results of the stages go to the result writer, the one
 * loop that commits.
 *
 * At most 256 deliveries (the worker's cap) are sent without a stored result, and up to 32 redeliveries and 32 tests: so many are
 * repeated after a crash at most.
 */
import type { InFlight } from '../../../database/in-flight.ts';
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import {
  type ContentRow,
  readContents,
  readSmallWaiting,
  readWaiting,
  SMALL_READ,
  type WaitingRow,
} from '../queue/delivery-queue-store.ts';
import { toLane } from '../queue/delivery-state.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import type { Job, Lane } from '../schedule/turn-tree.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import { type MakeAttempt, planAttemptResult } from './attempt.ts';
import { type CommittedBuffer, MAX_AGE_MS } from './committed-buffer.ts';
import type { DueScan } from './due-scan.ts';
import { type HookQueue, recordRead } from './hook-queue.ts';
import { forgetHealth } from './hook-queue-health.ts';
import {
  admit,
  drain,
  type HookQueueTable,
  hasSleep,
  isNews,
  listLanesToRefill,
  listToRefill,
  needsCycle,
  pickJobs,
  putBack,
} from './hook-queue-table.ts';
import { makeRoom, recordConnection, recordFormerOutcome, recordOutcome, takeDue } from './outcome-effects.ts';
import type { Results } from './result-batch.ts';
import type { ResultWriter } from './result-writer.ts';
import type { ShardLeases } from './shard-leases.ts';
import type { WakeSignal } from './wake-signal.ts';

/** Deliveries that one read brings for each lane of a hook queue with more than `SMALL_READ` that are due. */
const READ_LIMIT = 64;
/** Hook queues that get more in one cycle. */
const MAX_READS = 256;
/** Hook queues whose contents come with them: 32 × 2 lanes × 8 deliveries × 16 KiB are 8 MiB. */
const MAX_CONTENT_READS = 32;

export interface DispatchDependencies {
  readonly store: Store;
  readonly world: World;
  readonly leases: ShardLeases;
  readonly table: HookQueueTable;
  readonly committed: Pick<CommittedBuffer, 'takeContents'>;
  readonly scan: DueScan;
  readonly writer: Pick<ResultWriter, 'add' | 'wake'>;
  readonly makeAttempt: MakeAttempt;
  /** The attempts that have begun: a stop waits for them. */
  readonly sends: Pick<InFlight, 'track'>;
  /** Wakes the loop that runs the cycles. */
  readonly signal: WakeSignal;
}

/**
 * Resolves when its attempts have begun; each queues its results once it has ended. While the leases have lapsed, what is in memory
 * stays there: each cycle would read, pick and put back the same deliveries.
 */
export async function runDispatchCycle(dependencies: DispatchDependencies): Promise<void> {
  const { scan, table, writer, leases } = dependencies;
  if (!leases.areHeld()) return;
  if (scan.waitMs() === 0) writer.add({ changes: await scanDue(dependencies) });
  const contents = await admitWaiting(dependencies);
  if (hasSleep(table)) writer.wake();
  await beginAttempts(dependencies, contents);
}

/** Picks and sends, the last two stages. `contents` are those that admission has read. */
export async function beginAttempts(
  dependencies: DispatchDependencies,
  contents: readonly ContentRow[],
): Promise<void> {
  const { table, committed, leases } = dependencies;
  const known = new Map([...committed.takeContents(), ...contents].map((content) => [content.id, content]));
  if (!leases.areHeld()) return;
  const { ready, late } = partitionJobs(pickJobs(table), known);
  const begun = await Promise.allSettled([beginJobs(dependencies, ready, known), beginJobs(dependencies, late, known)]);
  for (const one of begun) if (one.status === 'rejected') throw one.reason;
}

/**
 * Jobs whose contents are in memory do not wait for the read of the others, which takes a round trip to the database. A job stays
 * behind an earlier one of its hook.
 */
function partitionJobs(jobs: readonly Job[], known: ReadonlyMap<number, ContentRow>) {
  const ready: Job[] = [];
  const late: Job[] = [];
  const lateHooks = new Set<number>();
  for (const job of jobs) {
    if (!known.has(job.id)) lateHooks.add(job.hookId);
    (lateHooks.has(job.hookId) ? late : ready).push(job);
  }
  return { ready, late };
}

async function beginJobs(
  dependencies: DispatchDependencies,
  jobs: readonly Job[],
  known: ReadonlyMap<number, ContentRow>,
): Promise<void> {
  if (jobs.length === 0) return;
  const { table, writer, signal, sends } = dependencies;
  for (const one of await prepareJobs(dependencies, jobs, known))
    void sends.track(async () => {
      writer.add(await sendDelivery(dependencies, one));
      if (needsCycle(table, one.job.hookId)) signal.wake();
    });
}

/**
 * A hook queue that leaves the memory during the read waits for the next scan: its row may have been read before its pause was
 * stored.
 */
export async function scanDue({ scan, table }: DispatchDependencies): Promise<HookQueueChange[]> {
  table.forgotten.clear();
  const rows = (await scan.read()).filter((row) => !table.forgotten.has(row.hook_id));
  const hasNews = rows.some((row) => isNews(table, row));
  const changes = takeDue(table, rows);
  scan.end(hasNews);
  return changes;
}

/**
 * Reads waiting deliveries into their hook queues. Returns the contents that were read with them, which are valid for the picks of
 * this cycle only: a later pick reads the hook as it is then. They are not valid either for a hook queue of which a result was
 * stored during the read, since the read may have found that delivery pending.
 */
export async function admitWaiting({
  store,
  world,
  table,
  signal,
}: DispatchDependencies): Promise<readonly ContentRow[]> {
  const hookQueues = listToRefill(table, MAX_READS);
  const reads = hookQueues.map((hookQueue) => {
    const { enqueues, stored } = hookQueue;
    return { hookQueue, enqueues, stored, limits: findLimits(table, hookQueue) };
  });
  const nowMs = world.nowMs();
  const few = reads.filter(isSmallRead).slice(0, MAX_CONTENT_READS);
  const many = reads.filter((read) => !few.includes(read));
  const [waiting, found] = await Promise.all([
    many.length === 0 ? [] : readWaiting(store, many.map(toRequest), nowMs),
    few.length === 0
      ? NOTHING_FOUND
      : readSmallWaiting(
          store,
          few.map(({ hookQueue }) => hookQueue.hookId),
          nowMs,
        ),
  ]);
  const rowsByHook = Map.groupBy([...waiting, ...found.rows], (row) => row.hook_id);
  // There may be more to read, and nothing else may start a cycle soon.
  if (hookQueues.length === MAX_READS) signal.wake();
  for (const read of reads) takeRead(table, read, rowsByHook.get(read.hookQueue.hookId) ?? []);
  const changed = new Set(
    reads.filter(({ hookQueue, stored }) => hookQueue.stored !== stored).map(({ hookQueue }) => hookQueue.hookId),
  );
  return found.contents.filter((content) => !changed.has(content.hook_id));
}

const NOTHING_FOUND = { rows: [], contents: [] } as const;

interface HookQueueRead {
  readonly hookQueue: HookQueue;
  /** When the read began. */
  readonly enqueues: number;
  readonly stored: number;
  /** 0 for a lane that is not read. */
  readonly limits: Readonly<Record<Lane, number>>;
}

const SMALL_LIMITS: HookQueueRead['limits'] = { first: SMALL_READ, retry: SMALL_READ };

/** Deliveries that are in memory are read again, since their rows are still pending; the limit makes room for them. */
function findLimits(table: HookQueueTable, hookQueue: HookQueue): HookQueueRead['limits'] {
  const { deliveryIds, hasMoreDue } = hookQueue;
  if (!hasMoreDue.first && !hasMoreDue.retry && deliveryIds.size <= SMALL_READ / 2) return SMALL_LIMITS;
  const lanes = listLanesToRefill(table, hookQueue);
  const findLimit = (lane: Lane) => (lanes.includes(lane) ? READ_LIMIT + deliveryIds.size : 0);
  return { first: findLimit('first'), retry: findLimit('retry') };
}

function isSmallRead({ limits }: HookQueueRead): boolean {
  return limits === SMALL_LIMITS;
}

function toRequest({ hookQueue, limits }: HookQueueRead) {
  return { hookId: hookQueue.hookId, limits };
}

function takeRead(
  table: HookQueueTable,
  { hookQueue, enqueues, limits }: HookQueueRead,
  found: readonly WaitingRow[],
): void {
  const retries = found.filter((row) => toLane(row.lane) === 'retry').length;
  const lastId = found.reduce((last, { id }) => Math.max(last, id), 0);
  const hasMoreDue = {
    ...(limits.first > 0 && { first: found.length - retries >= limits.first }),
    ...(limits.retry > 0 && { retry: retries >= limits.retry }),
  };
  recordRead(hookQueue, { hasMoreDue, enqueues, lastId }, table.world.monotonicMs());
  for (const row of found) admit(table, hookQueue, row);
}

interface PickedDelivery {
  readonly job: Job;
  /** Undefined when the delivery is not pending any more. */
  readonly content: ContentRow | undefined;
  /** The row of the attempt in the log. */
  readonly attemptId: number;
}

async function prepareJobs(
  { store, table, world }: DispatchDependencies,
  jobs: readonly Job[],
  known: ReadonlyMap<number, ContentRow>,
): Promise<PickedDelivery[]> {
  const startedMs = world.monotonicMs();
  try {
    const unknown = jobs.filter(({ id }) => !known.has(id));
    // Before the read: ids seldom wait for the database, but then a hook that was read beside them may have changed since.
    const attemptIds = await store.makeIds(jobs.length);
    const read = unknown.length === 0 ? [] : await readContents(store, unknown);
    // After a long wait the hook of a known content may have changed: without it the delivery is not sent, and is read again.
    const isFresh = world.monotonicMs() - startedMs < MAX_AGE_MS;
    const readById = new Map(read.map((content) => [content.id, content]));
    const find = ({ id }: Job) => readById.get(id) ?? (isFresh ? known.get(id) : undefined);
    return jobs.map((job, index) => ({ job, content: find(job), attemptId: attemptIds[index]! }));
  } catch (error) {
    for (const job of jobs) putBack(table, job);
    throw error;
  }
}

/** Makes one attempt, unless something has changed since the delivery was picked. */
export async function sendDelivery(dependencies: DispatchDependencies, picked: PickedDelivery): Promise<Results> {
  const { table, leases, world } = dependencies;
  const { job, content } = picked;
  const hookQueue = table.hookQueues.get(job.hookId);
  const isOwned = hookQueue !== undefined && leases.epochOf(hookQueue.shard) === hookQueue.epoch;
  // A delivery that is due later is reserved by a manual attempt.
  if (hookQueue === undefined || content === undefined || !isOwned || content.due_at_ms > world.nowMs()) {
    putBack(table, job);
    // The shard belongs to another worker, or did meanwhile: otherwise it would be read and picked in every cycle. Leases that
    // have lapsed are renewed soon, and until then the hook queue stays.
    if (hookQueue !== undefined && !isOwned && leases.areHeld()) drain(table, hookQueue);
    return { changes: [] };
  }
  const obstacle = findObstacle(content, hookQueue);
  if (obstacle === undefined) return await attemptDelivery(dependencies, { ...picked, hookQueue, content });
  putBack(table, job);
  drain(table, hookQueue);
  return { changes: [obstacle] };
}

interface SendableDelivery extends PickedDelivery {
  readonly content: ContentRow;
  readonly hookQueue: HookQueue;
}

async function attemptDelivery(dependencies: DispatchDependencies, sendable: SendableDelivery): Promise<Results> {
  const { table, writer, signal, makeAttempt, world } = dependencies;
  const { job, content, hookQueue, attemptId } = sendable;
  if (content.generation > hookQueue.generation) {
    forgetHealth(hookQueue, content.generation);
    table.scheduler.resume(hookQueue.origin, hookQueue.hookId);
    signal.wake();
  }
  const onConnected = (): void => {
    writer.add({ changes: recordConnection(table, hookQueue) });
    signal.wake();
  };
  const { ownerId } = hookQueue;
  const attempt = await makeAttempt(content, { deadlineMs: ATTEMPT_DEADLINE_MS, ownerId, onConnected });
  const { report } = attempt;
  table.scheduler.finish(job);
  const result = planAttemptResult(attempt, { shard: hookQueue.shard, epoch: hookQueue.epoch, attemptId }, world);
  const record = content.generation === hookQueue.generation ? recordOutcome : recordFormerOutcome;
  const changes = [...record(table, hookQueue, report.outcome), ...makeRoom(table, hookQueue)];
  table.scheduler.resume(hookQueue.origin, hookQueue.hookId);
  return { attempt: { result, report, url: content.url }, changes };
}

/** The change of the hook after its hook queue was read, if because of it nothing may be sent. */
function findObstacle(content: ContentRow, hookQueue: HookQueue): HookQueueChange | undefined {
  const { hookId, version, shard, epoch } = hookQueue;
  const origin = findOtherOrigin(content, hookQueue);
  if (origin !== undefined) return { kind: 'move', hookId, origin, shard, epoch };
  if (content.url === null) return { kind: 'cancel', hookId };
  return content.disabled_at_ms === null ? undefined : { kind: 'hold', hookId, version };
}

/** The outcome of an attempt would count for the wrong origin when the URL has changed since. */
function findOtherOrigin({ url }: ContentRow, hookQueue: HookQueue): string | undefined {
  // A slash ends the authority, so this URL has that origin, and need not be parsed.
  if (url === null || url.startsWith(`${hookQueue.origin}/`) || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  return origin === hookQueue.origin ? undefined : origin;
}
