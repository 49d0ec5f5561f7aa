/**
 * One dispatch cycle, in four stages of one statement at most each: scan which endpoints are due, admit the first few deliveries of
 * each to memory, pick those whose turn it is and read what they carry, and send. What the stages return goes to the result
 * writer, the one loop that commits.
 *
 * At most 256 deliveries (the worker's cap) are sent without a stored result, so a crash repeats at most these.
 */
import type { Store } from '../../../database/store.ts';
import type { World } from '../../../world.ts';
import {
  type ContentRow,
  FEW,
  readContents,
  readFewWaiting,
  readWaiting,
  type WaitingRow,
} from '../queue/delivery-queue-store.ts';
import { toLane } from '../queue/delivery-state.ts';
import type { EndpointChange } from '../queue/endpoint-change-store.ts';
import type { Job } from '../schedule/turn-tree.ts';
import { ATTEMPT_DEADLINE_MS } from '../send/send.ts';
import { describeAttemptResult, type MakeAttempt } from './attempt.ts';
import { type Endpoint, noteRead } from './delivery-endpoint.ts';
import type { DueScan } from './due-scan.ts';
import { recordConnection, recordOutcome, takeDue } from './endpoint-outcomes.ts';
import { admit, drain, type EndpointTable, hasSleep, listToRefill, pickJobs, putBack } from './endpoint-table.ts';
import type { Results } from './result-batch.ts';
import type { ResultWriter } from './result-writer.ts';
import type { ShardLeases } from './shard-leases.ts';
import type { WakeSignal } from './wake-signal.ts';

/** Deliveries of a crowded endpoint and lane that one read brings. */
const READ_LIMIT = 64;
/** Endpoints that get more in one cycle. */
const MAX_READS = 256;

export interface DispatchDependencies {
  readonly store: Store;
  readonly world: World;
  readonly leases: ShardLeases;
  readonly table: EndpointTable;
  readonly scan: DueScan;
  readonly writer: Pick<ResultWriter, 'add' | 'wake'>;
  readonly makeAttempt: MakeAttempt;
  /** Of the loop that runs the cycles. */
  readonly signal: WakeSignal;
}

/** Resolves with the attempts that it began, each of which resolves once its results are queued. */
export async function runDispatchCycle(dependencies: DispatchDependencies): Promise<Promise<void>[]> {
  const { scan, table, writer } = dependencies;
  if (scan.waitMs() === 0) writer.add({ changes: await scanDue(dependencies) });
  const contents = await admitWaiting(dependencies);
  if (hasSleep(table)) writer.wake();
  const picked = await pickDeliveries(dependencies, contents);
  return picked.map(async (one) => {
    writer.add(await sendDelivery(dependencies, one));
    dependencies.signal.wake();
  });
}

export async function scanDue({ scan, table }: DispatchDependencies): Promise<EndpointChange[]> {
  const rows = await scan.read();
  const changes = takeDue(table, rows);
  scan.end();
  return changes;
}

/**
 * The contents of those that were read with them, for the picks of this cycle: later ones read the hook as it is then, and so do
 * those of an endpoint of which a result was stored during the read, since the read may have found that delivery pending.
 */
export async function admitWaiting({ store, world, table }: DispatchDependencies): Promise<readonly ContentRow[]> {
  const endpoints = listToRefill(table, MAX_READS);
  const reads = endpoints.map((endpoint) => {
    const { enqueues, stored } = endpoint;
    return { endpoint, enqueues, stored, limit: findLimit(endpoint) };
  });
  const nowMs = world.nowMs();
  const [few, many] = [reads.filter(isOfFew), reads.filter((read) => !isOfFew(read))];
  const [waiting, found] = await Promise.all([
    many.length === 0 ? [] : readWaiting(store, many.map(toRequest), nowMs),
    few.length === 0
      ? NOTHING_FOUND
      : readFewWaiting(
          store,
          few.map(({ endpoint }) => endpoint.hookId),
          nowMs,
        ),
  ]);
  const rowsByHook = Map.groupBy([...waiting, ...found.rows], (row) => row.hook_id);
  for (const read of reads) takeRead(table, read, rowsByHook.get(read.endpoint.hookId) ?? []);
  const changed = new Set(
    reads.filter(({ endpoint, stored }) => endpoint.stored !== stored).map(({ endpoint }) => endpoint.hookId),
  );
  return found.contents.filter((content) => !changed.has(content.hook_id));
}

const NOTHING_FOUND = { rows: [], contents: [] } as const;

interface EndpointRead {
  readonly endpoint: Endpoint;
  /** When the read began. */
  readonly enqueues: number;
  readonly stored: number;
  readonly limit: number;
}

/** Unstored deliveries are read again, since they are still pending in their rows. */
function findLimit({ unstored, isCrowded }: Endpoint): number {
  return isCrowded || unstored.size > FEW / 2 ? READ_LIMIT + unstored.size : FEW;
}

function isOfFew({ limit }: EndpointRead): boolean {
  return limit === FEW;
}

function toRequest({ endpoint, limit }: EndpointRead) {
  return { hookId: endpoint.hookId, limit };
}

function takeRead(
  table: EndpointTable,
  { endpoint, enqueues, limit }: EndpointRead,
  found: readonly WaitingRow[],
): void {
  const retries = found.filter((row) => toLane(row.lane) === 'retry').length;
  noteRead(endpoint, { isCrowded: retries >= limit || found.length - retries >= limit, enqueues });
  for (const row of found) admit(table, endpoint, row);
}

interface PickedDelivery {
  readonly job: Job;
  /** Undefined when the delivery is not pending any more. */
  readonly content: ContentRow | undefined;
  /** The row of the attempt in the log. */
  readonly attemptId: number;
}

export async function pickDeliveries(
  { store, table }: DispatchDependencies,
  contents: readonly ContentRow[],
): Promise<PickedDelivery[]> {
  const jobs = pickJobs(table);
  if (jobs.length === 0) return [];
  try {
    const contentById = new Map(contents.map((content) => [content.id, content]));
    const missing = jobs.filter(({ id }) => !contentById.has(id));
    const [read, attemptIds] = await Promise.all([readContents(store, missing), store.makeIds(jobs.length)]);
    for (const content of read) contentById.set(content.id, content);
    return jobs.map((job, index) => ({ job, content: contentById.get(job.id), attemptId: attemptIds[index]! }));
  } catch (error) {
    for (const job of jobs) putBack(table, job);
    throw error;
  }
}

/** Makes one attempt, unless something has changed since the delivery was picked. */
export async function sendDelivery(dependencies: DispatchDependencies, picked: PickedDelivery): Promise<Results> {
  const { table, leases, world } = dependencies;
  const { job, content } = picked;
  const endpoint = table.endpoints.get(job.hookId);
  const epoch = endpoint && leases.epochOf(endpoint.shard);
  // A delivery that is due later is reserved by a manual attempt.
  if (endpoint === undefined || content === undefined || epoch === undefined || content.due_at_ms > world.nowMs()) {
    putBack(table, job);
    return { changes: [] };
  }
  const obstacle = findObstacle(content, endpoint);
  if (obstacle === undefined) return await attemptDelivery(dependencies, { ...picked, endpoint, content, epoch });
  putBack(table, job);
  drain(table, endpoint);
  return { changes: [obstacle] };
}

interface SendableDelivery extends PickedDelivery {
  readonly content: ContentRow;
  readonly endpoint: Endpoint;
  readonly epoch: number;
}

async function attemptDelivery(dependencies: DispatchDependencies, sendable: SendableDelivery): Promise<Results> {
  const { table, writer, signal, makeAttempt, world } = dependencies;
  const { job, content, endpoint, epoch, attemptId } = sendable;
  const attempt = await makeAttempt(content, ATTEMPT_DEADLINE_MS, () => {
    writer.add({ changes: recordConnection(table, endpoint) });
    signal.wake();
  });
  const { report } = attempt;
  table.scheduler.finish(job);
  const result = describeAttemptResult(attempt, { shard: endpoint.shard, epoch, attemptId }, world);
  const changes = recordOutcome(table, endpoint, report.outcome);
  table.scheduler.recheck(endpoint.origin, endpoint.hookId);
  return { attempt: { result, report }, changes };
}

/** What the hook has become since its endpoint was found, if nothing may be sent there. */
function findObstacle(content: ContentRow, endpoint: Endpoint): EndpointChange | undefined {
  const { hookId, version } = endpoint;
  const origin = findOtherOrigin(content, endpoint);
  if (origin !== undefined) return { kind: 'move', hookId, origin };
  if (content.url === null) return { kind: 'cancel', hookId };
  return content.disabled_at_ms === null ? undefined : { kind: 'hold', hookId, version };
}

/** The outcome of an attempt would count for the wrong origin when the URL has changed since. */
function findOtherOrigin({ url }: ContentRow, endpoint: Endpoint): string | undefined {
  if (url === null || !URL.canParse(url)) return undefined;
  const { origin } = new URL(url);
  return origin === endpoint.origin ? undefined : origin;
}
