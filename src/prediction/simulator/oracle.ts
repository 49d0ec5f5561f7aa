/**
 * Routes by what will really happen, which no router can know, to show how much there is to gain. Each candidate is tried out on a
 * copy of the server, with the true length of the answer, run until it is empty. It looks at one request at a time and not at what
 * will arrive later, so it is a very good policy and not the best possible one.
 */

import type { SimulatedServer } from './server.ts';
import type { RoutingPolicy } from './simulate.ts';
import type { SimulatedRequest } from './workload.ts';

/** The cost of sending a request to a server, in milliseconds. */
export interface TrueCost {
  /** Milliseconds from now to the last token of the request. */
  readonly ownMs: number;
  /** The delay that the request causes to the others on the server, in milliseconds, added up. */
  readonly othersMs: number;
}

export interface Lookahead {
  /** One cost for each server, if nothing else arrives. */
  tryAll(request: SimulatedRequest, nowMs: number): TrueCost[];
  /** Says where the request goes, so that later ones are judged with it there. */
  commit(server: number): void;
}

type EndById = ReadonlyMap<number, number>;

export function createLookahead(servers: readonly SimulatedServer[]): Lookahead {
  // While nothing arrives at a server, its expected ends stay true.
  const expected: EndById[] = servers.map(() => new Map());
  let tried: EndById[] = [];

  return {
    tryAll(request, nowMs) {
      tried = servers.map((server) => runOut(server, request, nowMs));
      return tried.map((ends, index) => {
        let othersMs = 0;
        for (const [id, endMs] of ends) if (id !== request.id) othersMs += endMs - (expected[index]!.get(id) ?? endMs);
        return { ownMs: ends.get(request.id)! - nowMs, othersMs };
      });
    },
    commit(server) {
      expected[server] = tried[server]!;
    },
  };
}

/** Sends each request where all requests together lose least. */
export function createOracle(servers: readonly SimulatedServer[]): RoutingPolicy {
  return chooseByCost('oracle', servers, ({ ownMs, othersMs }) => ownMs + othersMs);
}

/** Sends each request where it ends first, whatever that does to the others. */
export function createSelfishOracle(servers: readonly SimulatedServer[]): RoutingPolicy {
  return chooseByCost('selfish oracle', servers, ({ ownMs }) => ownMs);
}

function chooseByCost(
  name: string,
  servers: readonly SimulatedServer[],
  read: (cost: TrueCost) => number,
): RoutingPolicy {
  const lookahead = createLookahead(servers);
  return {
    name,
    choose(request, _candidates, nowMs) {
      const costs = lookahead.tryAll(request, nowMs).map(read);
      const chosen = costs.indexOf(Math.min(...costs));
      lookahead.commit(chosen);
      return chosen;
    },
  };
}

/** Returns when each request that is there would end, the new one among them. */
function runOut(server: SimulatedServer, request: SimulatedRequest, nowMs: number): EndById {
  const copy = server.fork();
  copy.submit(request, nowMs);
  const ends = new Map<number, number>();
  let endMs = copy.stepEndsMs() ?? copy.beginStep(nowMs);
  while (endMs !== undefined) {
    for (const outcome of copy.endStep(endMs).finished) ends.set(outcome.request.id, outcome.finishedMs);
    endMs = copy.beginStep(endMs);
  }
  return ends;
}
