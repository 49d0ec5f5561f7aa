/** Decides which requests arrive too late to be learned from, are dated ahead, or are too many from one server. */
import type { World } from '../../world.ts';
import { KEPT_AFTER_END_MS } from './ended-spans.ts';
import type { ArrivalRules } from './learnable-spans.ts';
import type { WaitingSpan } from './span-store.ts';

export interface Arrivals {
  readonly readRules: () => ArrivalRules;
  add(spans: readonly WaitingSpan[]): void;
  /** Forgets arrivals that no longer wait. Arrivals between two calls of this function are forgotten together. */
  forgetOld(): void;
}

export interface ArrivalLimits {
  /** A request is learned this long after its start. */
  readonly holdMs: number;
  /** At most this many requests of all servers may wait. */
  readonly maxWaiting: number;
}

/** Libraries and collectors hold spans for some seconds to send them in batches. */
const USUAL_DELAY_MS = 10_000;
/** The share of the places that one server may take, so that one with too many or repeated requests leaves room for others. */
const MOST_OF_SERVER = 0.5;

/** The arrivals from a time until the next part begins. */
interface Part {
  readonly fromMs: number;
  readonly servers: string[];
}

export function createArrivals(world: World, { holdMs, maxWaiting }: ArrivalLimits): Arrivals {
  const counts = new Map<string, number>();
  const parts: Part[] = [{ fromMs: world.monotonicMs(), servers: [] }];

  function change(server: string, by: number): void {
    const count = (counts.get(server) ?? 0) + by;
    if (count > 0) counts.set(server, count);
    else counts.delete(server);
  }

  return {
    readRules: () => ({
      nowMs: world.nowMs(),
      // The other half is for requests that overlap this one: they must end and arrive before it is learned.
      maxLateMs: Math.max(USUAL_DELAY_MS, holdMs / 2),
      maxOfServer: MOST_OF_SERVER * maxWaiting,
      countArrived: (server) => counts.get(server) ?? 0,
    }),
    add(spans) {
      for (const { server } of spans) {
        parts.at(-1)!.servers.push(server);
        change(server, 1);
      }
    },
    forgetOld() {
      parts.push({ fromMs: world.monotonicMs(), servers: [] });
      const keptFromMs = world.monotonicMs() - holdMs - KEPT_AFTER_END_MS;
      // A part ends where the next one begins.
      while (parts.length > 1 && parts[1]!.fromMs <= keptFromMs)
        for (const server of parts.shift()!.servers) change(server, -1);
    },
  };
}
