/** Reads the state of webhooks for the overview, of all owners or of one. */
import type { Identity } from '../../identity.ts';
import { DURATION_EDGES_MS, listDeliveryMinutes, minuteOf } from '../delivery/statistics/delivery-minute-store.ts';
import {
  BACKLOG_LIMIT,
  countBacklog,
  countHooksInScope,
  findOldestWaiting,
  listTroubledHooks,
  type OwnerScope,
} from '../hooks/overview-store.ts';
import type { Management } from './management.ts';

/** How far back the charts go. */
const CHART_MINUTES = 60;

export async function readWebhookOverview(
  { store, world, owners }: Pick<Management, 'store' | 'world' | 'owners'>,
  caller: Pick<Identity, 'userId' | 'login' | 'isAdmin'>,
) {
  const nowMs = world.nowMs();
  const scope: OwnerScope = caller.isAdmin ? 'all' : (await owners.listAdministered(caller)).map(({ id }) => id);
  const lastMinute = minuteOf(nowMs);
  const firstMinute = lastMinute - CHART_MINUTES + 1;
  const [totals, troubled, backlog, oldest, minutes] = await Promise.all([
    countHooksInScope(store, scope, nowMs),
    listTroubledHooks(store, scope, nowMs),
    countBacklog(store, scope),
    findOldestWaiting(store, scope),
    listDeliveryMinutes(store, scope, firstMinute),
  ]);
  // If no oldest one was found, only webhooks that are off can have waiting deliveries; others were delivered between the two reads.
  const isWaiting = oldest !== undefined || totals.disabled + totals.switchedOff > 0;
  const count = isWaiting ? backlog : 0;
  return {
    nowMs,
    ofAll: caller.isAdmin,
    totals,
    troubled,
    backlog: { count, isCut: count >= BACKLOG_LIMIT, oldest },
    hour: sumMinute(minutes, firstMinute),
    minutes: Array.from({ length: CHART_MINUTES }, (_, index) =>
      sumMinute(
        minutes.filter(({ minute }) => minute === firstMinute + index),
        firstMinute + index,
      ),
    ),
  };
}

interface Counts {
  readonly accepted: number;
  readonly failed: number;
  readonly durations: readonly number[];
}

function sumMinute(counts: readonly Counts[], minute: number) {
  const durations = [...DURATION_EDGES_MS, 0].map((_, index) =>
    counts.reduce((total, one) => total + (one.durations[index] ?? 0), 0),
  );
  const accepted = counts.reduce((total, one) => total + one.accepted, 0);
  const failed = counts.reduce((total, one) => total + one.failed, 0);
  return {
    startMs: minute * 60_000,
    accepted,
    failed,
    medianMs: quantileOf(durations, 0.5),
    p95Ms: quantileOf(durations, 0.95),
  };
}

/** The quantile of a histogram of durations, in ms, by linear interpolation within its bucket; null without attempts. */
export function quantileOf(durations: readonly number[], share: number): number | null {
  const total = durations.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let before = 0;
  for (const [index, count] of durations.entries()) {
    if (before + count >= share * total && count > 0) {
      const from = DURATION_EDGES_MS[index - 1] ?? 0;
      const to = DURATION_EDGES_MS[index] ?? LONGEST_MS;
      return from + ((share * total - before) / count) * (to - from);
    }
    before += count;
  }
  return LONGEST_MS;
}

/** The deadline of an attempt, which is the upper edge of the last bucket. */
const LONGEST_MS = 15_000;
