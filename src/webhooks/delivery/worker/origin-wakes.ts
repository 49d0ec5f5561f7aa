/**
 * Wakes the hook queues of origins that can be connected to again, separately from the loop that commits results. An origin may have
 * many thousands, and results of other owners must not wait for them. Origins take turns, a page at a time. Hook queues that a stop
 * leaves paused become due when their pauses end.
 */
import { createInFlight, type InFlight } from '../../../database/in-flight.ts';
import { listWaitingForOrigin, wakeForOrigin } from '../queue/origin-wake-store.ts';
import type { DueScan } from './due-scan.ts';
import { type StoreDependencies, storeUntilDone } from './store-until-done.ts';

/** How many hook queues one transaction wakes. */
const PAGE = 64;

export interface OriginWakes {
  /** Wakes the hook queues of an origin that can be connected to again, so that they need not wait for their own probes. */
  add(origin: string): void;
  /** Resolves after the page under way; no more hook queues are woken. */
  stop(): Promise<void>;
}

export interface OriginWakesDependencies extends StoreDependencies {
  readonly scan: Pick<DueScan, 'request'>;
}

interface WakesState {
  /** Origins in the order of their turns, with the hooks that are still to be woken; undefined before they are listed. */
  readonly turns: Map<string, readonly number[] | undefined>;
  readonly inFlight: InFlight;
  readonly stopping: AbortController;
  isRunning: boolean;
}

export function createOriginWakes(dependencies: OriginWakesDependencies): OriginWakes {
  const state: WakesState = {
    turns: new Map(),
    inFlight: createInFlight(),
    stopping: new AbortController(),
    isRunning: false,
  };
  return {
    add: (origin) => {
      // The origin is listed again, since its paused hooks may have changed.
      state.turns.set(origin, undefined);
      if (!state.isRunning) void state.inFlight.track(() => runTurns(dependencies, state));
    },
    stop: async () => {
      state.stopping.abort();
      await state.inFlight.settle();
    },
  };
}

async function runTurns(dependencies: OriginWakesDependencies, state: WakesState): Promise<void> {
  state.isRunning = true;
  // A Map also visits origins that are added meanwhile.
  for (const [origin, hookIds] of state.turns) {
    if (state.stopping.signal.aborted) break;
    state.turns.delete(origin);
    await takeTurn(dependencies, state, { origin, hookIds });
  }
  state.isRunning = false;
}

interface Turn {
  readonly origin: string;
  readonly hookIds: readonly number[] | undefined;
}

/** Wakes one page of hook queues. The others get a turn after the other origins, unless the origin was added again meanwhile. */
async function takeTurn(
  dependencies: OriginWakesDependencies,
  { turns, stopping }: WakesState,
  { origin, hookIds: known }: Turn,
): Promise<void> {
  const nowMs = dependencies.world.nowMs();
  const left = await storeUntilDone(
    dependencies,
    async (store) => {
      const hookIds = known ?? (await listWaitingForOrigin(store, origin));
      await wakeForOrigin(store, { origin, hookIds: hookIds.slice(0, PAGE) }, nowMs);
      return hookIds.slice(PAGE);
    },
    { what: 'ends of pauses', abandoned: stopping.signal, retryAfter: 'an outage' },
  );
  dependencies.scan.request();
  if (left !== undefined && left.length > 0 && !turns.has(origin)) turns.set(origin, left);
}
