/** Decides which requests arrive too late to be learned from, are dated ahead, or are too many from one server. */
import type { World } from '../../world.ts';
import type { ArrivalRules } from './learnable-spans.ts';
import type { WaitingSpan } from './span-store.ts';

export interface Arrivals {
  readonly readRules: () => ArrivalRules;
  /** How many requests of all servers wait, as far as this process knows. */
  countAll(): number;
  /** Counts the spans while they are stored, and from then on if that succeeds. */
  countWhile(spans: readonly WaitingSpan[], store: () => Promise<void>): Promise<void>;
  /** Replaces the counts with those of the store, which has the spans of all processes. */
  recount(readCounts: () => Promise<ReadonlyMap<string, number>>): Promise<void>;
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

export function createArrivals(world: World, { holdMs, maxWaiting }: ArrivalLimits): Arrivals {
  let counted = createTally();
  /** Stored by this process since the last count began. */
  const added = createTally();
  /** Being stored. Spans whose write failed are not counted. */
  const underWay = createTally();
  const tallies = () => [counted, added, underWay];

  return {
    readRules: () => ({
      nowMs: world.nowMs(),
      // The other half is for requests that overlap this one: they must end and arrive before it is learned.
      maxLateMs: Math.max(USUAL_DELAY_MS, holdMs / 2),
      maxOfServer: MOST_OF_SERVER * maxWaiting,
      countWaiting: (server) => tallies().reduce((sum, { counts }) => sum + (counts.get(server) ?? 0), 0),
    }),
    countAll: () => tallies().reduce((sum, { total }) => sum + total, 0),
    async countWhile(spans, store) {
      underWay.addSpans(spans, 1);
      try {
        await store();
        added.addSpans(spans, 1);
      } finally {
        underWay.addSpans(spans, -1);
      }
    },
    async recount(readCounts) {
      const before = new Map(added.counts);
      // The counts may lack spans that are added during the query. If they have them, they count twice until the next round.
      counted = createTally(await readCounts());
      for (const [server, count] of before) added.change(server, -count);
    },
  };
}

/** Counts spans by server. A server without spans has no entry. */
function createTally(initial: ReadonlyMap<string, number> = new Map()) {
  const counts = new Map(initial);
  let total = 0;
  for (const count of counts.values()) total += count;

  function change(server: string, by: number): void {
    const count = (counts.get(server) ?? 0) + by;
    if (count > 0) counts.set(server, count);
    else counts.delete(server);
    total += by;
  }

  return {
    counts,
    get total() {
      return total;
    },
    change,
    addSpans(spans: readonly WaitingSpan[], by: number): void {
      for (const { server } of spans) change(server, by);
    },
  };
}
