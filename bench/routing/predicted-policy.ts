import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../../src/prediction/columns.ts';
import { createLiveModel, type Foreseen, type LiveModel } from '../../src/prediction/live-model.ts';
import type { LatencyModel } from '../../src/prediction/model.ts';
import { createRandom, type Random } from '../../src/prediction/simulator/random.ts';
import type { Candidate, RoutingPolicy } from '../../src/prediction/simulator/simulate.ts';

export interface PredictedPolicyOptions {
  readonly name: string;
  readonly model: LatencyModel;
  /** Whether it hears of first tokens and ends, as a service that is reported to. */
  readonly learnsOnline: boolean;
  /** Answers are taken to have this many tokens: no gateway knows before. */
  readonly expectedOutputTokens: number;
}

/** Sends most requests where the last token is predicted to come first. */
export function createPredictedPolicy(options: PredictedPolicyOptions): RoutingPolicy {
  const live = createLiveModel(options.model);
  const random = createRandom(1);
  const underWay = new Map<number, Foreseen>();
  return {
    name: options.name,
    choose(request, candidates) {
      const costs = predictEnds(live, candidates, options.expectedOutputTokens);
      const chosen = drawCheap(costs, random);
      if (options.learnsOnline) underWay.set(request.id, foresee(live, candidates[chosen]!));
      return chosen;
    },
    onFirstToken(request, _candidate, ttftMs) {
      const foreseen = underWay.get(request.id);
      if (foreseen !== undefined) live.observe(foreseen, 'ttft', ttftMs);
    },
    onFinished(request, _candidate, tpotMs) {
      const foreseen = underWay.get(request.id);
      if (foreseen !== undefined && tpotMs !== undefined) live.observe(foreseen, 'tpot', tpotMs);
      underWay.delete(request.id);
    },
  };
}

/** How much less often a server is chosen that is predicted to take twice as long: 2 to the power of this. */
const PREFERENCE = 8;

/** By chance, the cheaper the likelier: metrics are some time old, and all that arrives until the next would go to one server. */
function drawCheap(costs: Float64Array, random: Random): number {
  const least = Math.min(...costs);
  const weights = costs.map((cost) => (least / cost) ** PREFERENCE);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  return weights.length - 1;
}

function predictEnds(live: LiveModel, candidates: readonly Candidate[], outputTokens: number): Float64Array {
  const predicted = { ttftMs: new Float64Array(candidates.length), tpotMs: new Float64Array(candidates.length) };
  live.predict(fillColumns(candidates), predicted);
  return predicted.ttftMs.map((ttftMs, i) => ttftMs + (outputTokens - 1) * predicted.tpotMs[i]!);
}

function foresee(live: LiveModel, candidate: Candidate): Foreseen {
  return live.foresee(fillColumns([candidate]), '', Buffer.from(candidate.server));
}

function fillColumns(candidates: readonly Candidate[]): PredictColumns {
  const columns = createPredictColumns(candidates.length);
  columns.count = candidates.length;
  columns.podTypes.push('');
  columns.source = Buffer.from(candidates.map((candidate) => candidate.server).join(''));
  let at = 0;
  for (const [i, candidate] of candidates.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = name === 'hbmUtilization' ? 0 : candidate[name];
    columns.serverIpStart[i] = at;
    columns.serverIpLength[i] = candidate.server.length;
    at += candidate.server.length;
  }
  return columns;
}
