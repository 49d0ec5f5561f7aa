/** Removes what people's sign-ins leave behind. */
import type { Store } from '../../database/store.ts';
import type { IsClockTrusted } from '../../steady-clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { createRoundWorker } from '../../workers/round-worker.ts';
import type { Worker } from '../../workers/worker.ts';
import { sweepForgottenAttempts } from '../accounts/attempt-store.ts';
import { sweepOldEvents } from '../accounts/audit-store.ts';
import { sweepExpiredSessions } from '../accounts/session-store.ts';
import { sweepExpiredTickets } from '../accounts/ticket-store.ts';
import type { SignInContext } from '../sign-in/sign-in-context.ts';

const REST_MS = 10 * 60_000;
/** Small, so that a sweep never holds up the writes of others. */
const BATCH = 500;
const PAUSE_MS = 20;

const DAY_MS = 86_400_000;

interface SignInSweeperDependencies {
  readonly context: SignInContext;
  readonly log: Log;
  /** How long an event of the audit log is kept. */
  readonly auditDays: number;
  readonly isClockTrusted: IsClockTrusted;
}

export function createAccountsWorker({ context, log, auditDays, isClockTrusted }: SignInSweeperDependencies): Worker {
  const { world } = context;
  const round = async (signal: AbortSignal): Promise<void> => {
    if (isClockTrusted()) await sweepAccounts(context, { auditDays, signal });
  };
  return createRoundWorker({ name: 'accounts', restMs: REST_MS, world, log, round });
}

/** Exported for its test. Several processes may sweep at once: each batch removes only what is still there. */
export async function sweepAccounts(
  { store, world }: Pick<SignInContext, 'store' | 'world'>,
  { auditDays, signal }: { readonly auditDays: number; readonly signal: AbortSignal },
): Promise<void> {
  const sweepEvents = (_: Store, nowMs: number, limit: number) =>
    sweepOldEvents(store, nowMs - auditDays * DAY_MS, limit);
  for (const sweep of [sweepExpiredSessions, sweepExpiredTickets, sweepForgottenAttempts, sweepEvents])
    while (!signal.aborted && (await sweep(store, world.nowMs(), BATCH)) === BATCH)
      await world.sleep(PAUSE_MS, signal).catch(() => {});
}
