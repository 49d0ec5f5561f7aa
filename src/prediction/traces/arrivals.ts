/** Decides which requests come too late to be learned, too early, or too many from one server. */
import type { World } from '../../world.ts';
import { KEPT_AFTER_END_MS } from './ended-spans.ts';
import type { ArrivalRules } from './learnable-spans.ts';
import type { WaitingSpan } from './span-store.ts';

export interface Arrivals {
  readonly readRules: () => ArrivalRules;
  add(spans: readonly WaitingSpan[]): void;
  /** Forgets arrivals of so long ago that they wait no more. Those between two calls of this are forgotten together. */
  forgetOld(): void;
}

export interface ArrivalLimits {
  /** How long after its start a request is learned. */
  readonly holdMs: number;
  /** The most requests of all servers that may wait. */
  readonly maxWaiting: number;
}

/** Libraries and collectors keep spans for some seconds, to send them together. */
const USUAL_DELAY_MS = 10_000;
/** A server that sends too many, or each again under another id, leaves room for the others. */
const MOST_OF_SERVER = 0.5;

/** The arrivals from a moment until the next part begins. */
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
      // The other half is for the requests that overlap this one: they must have ended and arrived when it is learned.
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
