/**
 * Records refusals that any stranger can cause in the audit log, a limited number an hour, so that no caller floods it. One
 * network and all networks together each have a limit; the next event that is written has the number of omitted ones. It makes
 * no difference whether the account or the application exists; otherwise the response time would reveal it. Each process counts
 * for itself: N processes write N times as many.
 */
import type { Store } from '../../database/store.ts';
import { networkOf, prefix48Of } from '../../http/client-address.ts';
import type { World } from '../../world.ts';
import { type AuditEvent, auditStatement } from './audit-store.ts';

export interface RefusalLog {
  record(event: AuditEvent & { readonly address: string }): Promise<void>;
}

interface RefusalDependencies {
  readonly store: Store;
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
}

export const REFUSALS_AN_HOUR = { ofNetwork: 100, ofAll: 2000 } as const;
const WINDOW_MS = 3_600_000;

export function createRefusalLog({ store, world }: RefusalDependencies): RefusalLog {
  const mayWrite = createHourlyBudget(world);
  let omitted = 0;
  return {
    async record(event) {
      if (!mayWrite(prefix48Of(event.address) ?? networkOf(event.address))) {
        omitted += 1;
        return;
      }
      const details = omitted === 0 ? event.details : { ...event.details, not_recorded: omitted };
      omitted = 0;
      const { statement, parameters } = auditStatement({ ...event, details }, world.nowMs());
      await store.write(statement, parameters);
    },
  };
}

/** Returns a function that counts an event if it may be written. Keeps at most as many networks as events were written. */
function createHourlyBudget({ monotonicMs }: Pick<World, 'monotonicMs'>): (network: string) => boolean {
  let endsAtMs = 0;
  let total = 0;
  const countByNetwork = new Map<string, number>();
  return (network) => {
    if (monotonicMs() >= endsAtMs) {
      endsAtMs = monotonicMs() + WINDOW_MS;
      total = 0;
      countByNetwork.clear();
    }
    const count = countByNetwork.get(network) ?? 0;
    if (total >= REFUSALS_AN_HOUR.ofAll || count >= REFUSALS_AN_HOUR.ofNetwork) return false;
    total += 1;
    countByNetwork.set(network, count + 1);
    return true;
  };
}
