/** Removes what people's sign-ins leave behind. */
import type { Log } from '../telemetry/log.ts';
import { createRoundWorker } from '../workers/round-worker.ts';
import type { Worker } from '../workers/worker.ts';
import { sweepForgottenAttempts } from './attempt-store.ts';
import { sweepExpiredSessions } from './session-store.ts';
import type { SignInKit } from './sign-in/sign-in-kit.ts';
import { sweepExpiredTickets } from './ticket-store.ts';

const REST_MS = 10 * 60_000;
/** Small, so that a sweep never holds up the writes of others. */
const BATCH = 500;
const PAUSE_MS = 20;

export function createAccountsWorker(kit: SignInKit, log: Log): Worker {
  const { world } = kit;
  const round = (signal: AbortSignal): Promise<void> => sweepAccounts(kit, signal);
  return createRoundWorker({ name: 'accounts', restMs: REST_MS, world, log, round });
}

/** Exported for its test. Several processes may sweep at once: each batch removes only what is still there. */
export async function sweepAccounts({ store, world }: SignInKit, signal: AbortSignal): Promise<void> {
  for (const sweep of [sweepExpiredSessions, sweepExpiredTickets, sweepForgottenAttempts])
    while (!signal.aborted && (await sweep(store, world.nowMs(), BATCH)) === BATCH)
      await world.sleep(PAUSE_MS, signal).catch(() => {});
}
