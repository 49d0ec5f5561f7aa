/**
 * Runs one dispatch cycle in four stages: scan, admit, pick, send. The results of the stages go to the result writer, the one
 * loop that commits.
 *
 * At any time at most 256 deliveries (the worker's cap), 32 redeliveries and 32 tests were sent without a stored result. A crash
 * repeats no more than these.
 */
import type { InFlight } from '../../../database/in-flight.ts';
import { hasSleep, isNews, needsCycle, pickJobs, putBack } from '../hook-queues/hook-queue-table.ts';
import { takeDue } from '../hook-queues/outcome-effects.ts';
import { type ContentRow, readContents } from '../queue/delivery-queue-store.ts';
import type { HookQueueChange } from '../queue/hook-queue-change-store.ts';
import type { Job } from '../schedule/turn-tree.ts';
import { type AdmitDependencies, admitWaiting } from './admit-waiting.ts';
import { type CommittedBuffer, MAX_AGE_MS } from './committed-buffer.ts';
import type { DueScan } from './due-scan.ts';
import type { ResultWriter } from './result-writer.ts';
import { type PickedDelivery, type SendDependencies, sendDelivery } from './send-delivery.ts';

export interface DispatchDependencies extends AdmitDependencies, SendDependencies {
  readonly committed: Pick<CommittedBuffer, 'takeContents'>;
  readonly scan: DueScan;
  readonly writer: Pick<ResultWriter, 'add' | 'wake'>;
  /** Tracks attempts that have begun, for which a stop waits. */
  readonly sends: Pick<InFlight, 'track'>;
}

/**
 * Resolves when the attempts of the cycle have begun; each queues its results once it has ended. While the leases have lapsed, no
 * delivery is picked: each cycle would read, pick and put back the same ones.
 */
export async function runDispatchCycle(dependencies: DispatchDependencies): Promise<void> {
  const { scan, table, writer, leases } = dependencies;
  if (!leases.areHeld()) return;
  if (scan.waitMs() === 0) writer.add({ changes: await scanDue(dependencies) });
  const contents = await admitWaiting(dependencies);
  if (hasSleep(table)) writer.wake();
  await beginAttempts(dependencies, contents);
}

/** Picks and sends: the last two stages. `contents` were read by the admission stage. */
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
 * Separates jobs whose contents are in memory from those that wait for a read, a round trip to the database. A job after such a job of
 * the same hook waits too, so that the order of a hook is kept.
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
 * Runs the scan stage. A hook queue that was removed from memory during the read waits for the next scan: its row may have been read
 * before its pause was stored.
 */
export async function scanDue({ scan, table }: DispatchDependencies): Promise<HookQueueChange[]> {
  table.forgotten.clear();
  const rows = (await scan.read()).filter((row) => !table.forgotten.has(row.hook_id));
  const hasNews = rows.some((row) => isNews(table, row));
  const changes = takeDue(table, rows);
  scan.end(hasNews);
  return changes;
}

async function prepareJobs(
  { store, table, world }: DispatchDependencies,
  jobs: readonly Job[],
  known: ReadonlyMap<number, ContentRow>,
): Promise<PickedDelivery[]> {
  const startedMs = world.monotonicMs();
  try {
    const unknown = jobs.filter(({ id }) => !known.has(id));
    // Ids are made before the read: making them rarely waits for the database, but after such a wait a hook read before may have changed.
    const attemptIds = await store.makeIds(jobs.length);
    const read = unknown.length === 0 ? [] : await readContents(store, unknown);
    // After a long wait the hook of a known content may have changed. The delivery is then not sent, and is read again.
    const isFresh = world.monotonicMs() - startedMs < MAX_AGE_MS;
    const readById = new Map(read.map((content) => [content.id, content]));
    const find = ({ id }: Job) => readById.get(id) ?? (isFresh ? known.get(id) : undefined);
    return jobs.map((job, index) => ({ job, content: find(job), attemptId: attemptIds[index]! }));
  } catch (error) {
    for (const job of jobs) putBack(table, job);
    throw error;
  }
}
