/** Policies that ask a model in this process. */

import { createPriorModel, type LatencyModel } from '../../src/prediction/model/model.ts';
import type { Forecast } from '../../src/prediction/online/forecasts.ts';
import { createLiveModel, type LiveModel } from '../../src/prediction/online/live-model.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../../src/prediction/schema/columns.ts';
import { fillMetrics } from '../../src/prediction/schema/input-fields.ts';
import { createRandom, type Random } from '../../src/prediction/simulator/random-draws.ts';
import type { RoutingPolicy } from '../../src/prediction/simulator/simulate.ts';
import {
  type Answer,
  createServerPicker,
  describeInput,
  estimateLength,
  type GatewayInput,
  scoreServer,
  withoutLoad,
} from './gateway.ts';
import { createLearner } from './learner.ts';

/** Starts from the prior, receives every first token and end, and is retrained as in a service. */
export function createTrivetPolicy(name = 'trivet', score = scoreServer): RoutingPolicy {
  const live = createLiveModel(createPriorModel());
  const learner = createLearner((model) => live.replaceModel(model));
  const scored = createScoredPolicy(name, live, score);
  const underWay = new Map<number, { readonly input: GatewayInput; readonly forecast: Forecast; ttftMs: number }>();
  return {
    name: scored.name,
    choose(request, candidates, nowMs) {
      const chosen = scored.choose(request, candidates, nowMs);
      const input = describeInput(candidates[chosen]!);
      const forecast = live.forecast(fillColumns([input]), '', Buffer.from(input.server));
      underWay.set(request.id, { input, forecast, ttftMs: Number.NaN });
      return chosen;
    },
    onFirstToken(request, _candidate, ttftMs) {
      const known = underWay.get(request.id)!;
      known.ttftMs = ttftMs;
      live.observe(known.forecast, 'ttft', { observedMs: ttftMs });
    },
    onFinished(request, candidate, tpotMs, nowMs) {
      const { input, forecast, ttftMs } = underWay.get(request.id)!;
      underWay.delete(request.id);
      if (tpotMs !== undefined) live.observe(forecast, 'tpot', { observedMs: tpotMs });
      scored.onFinished?.(request, candidate, tpotMs, nowMs);
      learner.add({ input, atMs: request.arrivalMs, ttftMs, tpotMs });
    },
  };
}

/** The score of docs/how-to/route.md by a model without feedback, which shows the value of the score alone. */
export function createScoredPolicy(name: string, live: LiveModel, score = scoreServer): RoutingPolicy {
  const length = estimateLength();
  const pickServer = createServerPicker();
  return {
    name,
    choose(_request, candidates) {
      const inputs = candidates.map(describeInput);
      const answers = predictAll(live, [...inputs, ...inputs.map(withoutLoad)]);
      const scores = candidates.map((candidate, i) =>
        score(answers[i]!, answers[inputs.length + i]!, candidate, length.mean()),
      );
      return pickServer(scores, candidates);
    },
    onFinished: (request) => length.observe(request.outputTokens),
  };
}

/**
 * Routes as peers do: by the p90 of a model that was trained apart, without feedback. Servers are chosen at random, mostly those whose
 * last token is predicted to arrive first; otherwise all requests until the next scrape would go to one server.
 */
export function createStaticPolicy(model: LatencyModel): RoutingPolicy {
  const live = createLiveModel(model);
  const length = estimateLength();
  const random = createRandom(1);
  return {
    name: 'trees, p90',
    choose(_request, candidates) {
      const answers = predictAll(live, candidates.map(describeScraped));
      return drawCheap(
        answers.map(({ ttftMs, tpotMs }) => ttftMs + length.mean() * tpotMs),
        random,
      );
    },
    onFinished: (request) => length.observe(request.outputTokens),
  };
}

type Candidates = Parameters<RoutingPolicy['choose']>[1];

/** Metrics as they were scraped. */
export function describeScraped(candidate: Candidates[number]): GatewayInput {
  const { underWay: _own, sentSinceScrape: _since, ...metrics } = candidate;
  return { ...fillMetrics(() => 0), ...metrics };
}

/** A server that is predicted to take twice as long is chosen 2 to the power of this times less often. */
const PREFERENCE = 8;

function drawCheap(costs: readonly number[], random: Random): number {
  const least = Math.min(...costs);
  const weights = costs.map((cost) => (least / cost) ** PREFERENCE);
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  return weights.length - 1;
}

function predictAll(live: LiveModel, inputs: readonly GatewayInput[]): Answer[] {
  const predicted = { ttftMs: new Float64Array(inputs.length), tpotMs: new Float64Array(inputs.length) };
  live.predict(fillColumns(inputs), predicted);
  return inputs.map((_, i) => ({ ttftMs: predicted.ttftMs[i]!, tpotMs: predicted.tpotMs[i]! }));
}

function fillColumns(inputs: readonly GatewayInput[]): PredictColumns {
  const columns = createPredictColumns(inputs.length);
  columns.count = inputs.length;
  columns.podTypes.push('');
  columns.source = Buffer.from(inputs.map((input) => input.server).join(''));
  let at = 0;
  for (const [i, input] of inputs.entries()) {
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.serverIpStart[i] = at;
    columns.serverIpLength[i] = input.server.length;
    at += input.server.length;
  }
  return columns;
}
