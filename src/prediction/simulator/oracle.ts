/**
 * Routes by what will really happen, which no router can know, to show how much can be gained. It tries each candidate on a copy of
 * the server that runs until it is empty, with the true length of the answer. It considers one request at a time and no later
 * arrivals, so it is a very good policy but not the best possible one.
 */

import type { SimulatedServer } from './server.ts';
import type { RoutingPolicy } from './simulate.ts';
import type { SimulatedRequest } from './workload.ts';

/** The cost of sending a request to a server, in milliseconds. */
export interface TrueCost {
  /** Milliseconds from now to the last token of the request. */
  readonly ownMs: number;
  /** The sum of the delays, in milliseconds, that the request causes to the others on the server. */
  readonly othersMs: number;
}

export interface Lookahead {
  /** Returns the cost for each server if nothing else arrives. */
  tryAll(request: SimulatedRequest, nowMs: number): TrueCost[];
  /** Records where the last tried request goes, so that later ones are tried with it there. */
  commit(server: number): void;
}

type EndById = ReadonlyMap<number, number>;

export function createLookahead(servers: readonly SimulatedServer[]): Lookahead {
  // The expected ends of a server stay true until another request arrives there.
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

/** Sends each request to the server with the least delay for all requests together. */
export function createOracle(servers: readonly SimulatedServer[]): RoutingPolicy {
  return chooseByCost('oracle', servers, ({ ownMs, othersMs }) => ownMs + othersMs);
}

/** Sends each request to the server where it ends first, regardless of the others. */
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

/** Returns when each request on the server would end, including the new one. */
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
