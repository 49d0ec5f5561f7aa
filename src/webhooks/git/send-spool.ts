/** Sends the spooled events of each repository in order, and tries again while the service is away. */
import { describeError } from '../../errors.ts';
import type { World } from '../../world.ts';
import type { SendEntry, SendOutcome } from './http-sender.ts';
import type { SpoolEntry } from './read-entry.ts';
import { isFileOf, type Spool } from './spool.ts';

export interface SpoolReport {
  readonly sent: number;
  /** Why entries still wait; undefined if none do. */
  readonly waiting: string | undefined;
  readonly refused: readonly string[];
  /** Files that stay in the spool because they cannot be read or moved, and why. */
  readonly stuck: ReadonlyMap<string, string>;
}

interface Round {
  readonly spool: Spool;
  readonly send: SendEntry;
  readonly signal: AbortSignal;
  sent: number;
  waiting: string | undefined;
  readonly refused: string[];
  readonly stuck: Map<string, string>;
  /** Repositories with an entry that has to wait. Their later entries wait too; entries of other repositories are sent. */
  readonly waitingRepositories: Set<string>;
}

/** The result for one file; `stop` if no other file can be sent now either. */
type Progress = 'next' | 'stop';

/** Sends the entries, those of a repository in order, until the spool is empty, the service is away or the time is over. */
export async function sendSpool(spool: Spool, send: SendEntry, signal: AbortSignal): Promise<SpoolReport> {
  const round: Round = {
    spool,
    send,
    signal,
    sent: 0,
    waiting: undefined,
    refused: [],
    stuck: new Map(),
    waitingRepositories: new Set(),
  };
  try {
    using lock = spool.lock('send');
    if (lock === undefined) round.waiting = ANOTHER_SENDS;
    else await sendAll(round);
  } catch (error) {
    round.waiting = describeError(error);
  }
  return round;
}

async function sendAll(round: Round): Promise<void> {
  // Events that are spooled meanwhile are listed in the next pass.
  for (let files = listSendable(round); files.length > 0; files = listSendable(round))
    for (const file of files) {
      if (isBehindAnother(round, file)) continue;
      if ((await sendFile(round, file)) === 'stop') return;
    }
}

function listSendable(round: Round): string[] {
  return round.spool.list().filter((file) => !round.stuck.has(file) && !isBehindAnother(round, file));
}

function isBehindAnother({ waitingRepositories }: Round, file: string): boolean {
  for (const repository of waitingRepositories) if (isFileOf(repository, file)) return true;
  return false;
}

async function sendFile(round: Round, file: string): Promise<Progress> {
  const { spool } = round;
  const reading = spool.read(file);
  if (reading.kind === 'gone') return 'next';
  if (reading.kind === 'unreadable') {
    round.stuck.set(file, reading.reason);
    return 'next';
  }
  if (reading.kind === 'malformed') {
    round.refused.push(`"${file}" in trivet-spool is not an event, and is set aside: ${reading.reason}`);
    removeOrMarkStuck(round, file, () => spool.setAside(file));
    return 'next';
  }
  const { entry } = reading;
  if (round.waitingRepositories.has(entry.repository)) {
    // An earlier version wrote this file, whose name does not contain the repository.
    round.stuck.set(file, round.waiting ?? '');
    return 'next';
  }
  return takeOutcome(round, { file, entry }, await trySend(round, entry));
}

function takeOutcome(
  round: Round,
  { file, entry }: { readonly file: string; readonly entry: SpoolEntry },
  outcome: SendOutcome,
): Progress {
  const { spool } = round;
  if (outcome.kind === 'sent') {
    round.sent += 1;
    removeOrMarkStuck(round, file, () => spool.remove(file));
    return 'next';
  }
  if (outcome.kind === 'refused') {
    round.refused.push(`the service refused an event: ${outcome.reason}`);
    removeOrMarkStuck(round, file, () => spool.setAside(file));
    return 'next';
  }
  round.waiting ??= outcome.reason;
  if (outcome.scope === 'service') return 'stop';
  round.waitingRepositories.add(entry.repository);
  if (!isFileOf(entry.repository, file)) round.stuck.set(file, outcome.reason);
  return 'next';
}

async function trySend({ send, signal }: Round, entry: SpoolEntry): Promise<SendOutcome> {
  try {
    signal.throwIfAborted();
    return await send(entry, signal);
  } catch (error) {
    return { kind: 'later', scope: 'service', reason: describeError(error) };
  }
}

/** Removes or moves a file. If that fails, it is skipped from now on, so that it is not sent again and again. */
function removeOrMarkStuck(round: Round, file: string, change: () => void): void {
  try {
    change();
  } catch (error) {
    round.stuck.set(file, describeError(error));
  }
}

const ANOTHER_SENDS = 'another process is sending';
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** The longest time of one pass: Node's `AbortSignal.timeout()` refuses more than 49 days. */
const LONGEST_TIMER_MS = 24 * 3_600_000;
/** The time limit for sending one event. */
const SEND_TIMEOUT_MS = 30_000;

export interface PatientOptions {
  /** When it gives up for now; the next push tries again. */
  readonly untilMs: number;
  readonly world: Pick<World, 'nowMs' | 'sleep' | 'random'>;
}

/**
 * Sends until the spool is empty or the time is over. Returns at once if another process does the same: every push whose events must
 * wait starts one, and a service may be away during many pushes.
 */
export async function sendPatiently(spool: Spool, send: SendEntry, options: PatientOptions): Promise<SpoolReport> {
  for (;;) {
    const report = await sendAsTheOnlyOne(spool, send, options);
    // A push may have spooled an entry after the last check and before the lock was released, when its own process could not get the lock.
    const isEmpty = spool.list().every((file) => report.stuck.has(file));
    if (report.waiting !== undefined || isEmpty) return report;
  }
}

async function sendAsTheOnlyOne(spool: Spool, send: SendEntry, options: PatientOptions): Promise<SpoolReport> {
  const { untilMs, world } = options;
  using lock = spool.lock('background');
  if (lock === undefined) return { sent: 0, waiting: ANOTHER_SENDS, refused: [], stuck: new Map() };
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    const leftMs = Math.min(Math.max(1, untilMs - world.nowMs()), LONGEST_TIMER_MS);
    const report = await sendSpool(spool, withTimeout(send), AbortSignal.timeout(leftMs));
    if (report.waiting === undefined) return report;
    if (world.nowMs() + waitMs >= untilMs) return report;
    await world.sleep(waitMs * (0.5 + world.random()));
  }
}

function withTimeout(send: SendEntry): SendEntry {
  return (entry, signal) => send(entry, AbortSignal.any([signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]));
}
