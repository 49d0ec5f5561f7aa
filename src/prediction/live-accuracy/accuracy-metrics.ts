/**
 * Exposes errors and coverage of served predictions as Prometheus metrics. There is a series for each pod type of a model, over
 * its newest five-minute periods that hold at least 300 observed times, and for the most recently reported servers. They are read
 * from the store at each scrape, so that every process shows the same.
 */
import { Gauge } from 'prom-client';
import type { Store } from '../../database/store.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { World } from '../../world.ts';
import type { PredictionTarget } from '../schema/observation-table.ts';
import { listNewestServerSums, type PartSums } from './accuracy-read-store.ts';
import { type LiveScores, toScores } from './accuracy-sums.ts';
import { createNewestTimesReader, ENOUGH_TIMES } from './newest-times.ts';

const MINUTE_MS = 60_000;
/** Metrics of servers cover this time, however many reports there were. */
const SERVER_MS = 30 * MINUTE_MS;
/** The ten gauges of one scrape share a read. */
const FRESH_MS = 1000;

const HELP = {
  mape: 'Mean error of predictions, relative to the observed time.',
  mdape: 'Median error of predictions, relative to the observed time.',
  wape: 'Sum of the errors of predictions divided by the sum of observed times.',
  bias: 'Mean of (predicted - observed) / observed; above 0 when predictions are too long.',
  p90_coverage: 'Share of observed times that were not above the predicted p90.',
} as const;

type Score = keyof typeof HELP;
const SCORES: Readonly<Record<Score, (scores: LiveScores) => number>> = {
  mape: ({ mape }) => mape,
  mdape: ({ mdape }) => mdape,
  wape: ({ wape }) => wape,
  bias: ({ bias }) => bias,
  p90_coverage: ({ p90Coverage }) => p90Coverage,
};

interface ScoredPart {
  readonly targetModel: string;
  readonly part: string;
  readonly target: PredictionTarget;
  readonly scores: LiveScores;
}

interface RecentScores {
  readonly podTypes: readonly ScoredPart[];
  readonly servers: readonly ScoredPart[];
}

export interface AccuracyMetricsDependencies {
  readonly store: Store;
  readonly metrics: Metrics;
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
}

export function registerAccuracyMetrics({ store, metrics, world }: AccuracyMetricsDependencies): void {
  const readRecent = createRecentReader(store, world);
  const registers = [metrics];
  for (const [score, readScore] of Object.entries(SCORES) as [Score, (scores: LiveScores) => number][]) {
    new Gauge({
      name: `trivet_prediction_${score}_ratio`,
      help: `${HELP[score]} Over all processes, from the newest five-minute periods that together hold ${ENOUGH_TIMES} observations.`,
      labelNames: ['model', 'pod_type', 'target'],
      registers,
      async collect() {
        const { podTypes } = await readRecent();
        this.reset();
        for (const { targetModel: model, part, target, scores } of podTypes)
          this.set({ model, pod_type: part || 'aggregate', target }, readScore(scores) / 100);
      },
    });
    new Gauge({
      name: `trivet_prediction_server_${score}_ratio`,
      help: `${HELP[score]} Over all processes, of one server in the last half hour.`,
      labelNames: ['model', 'server', 'target'],
      registers,
      async collect() {
        const { servers } = await readRecent();
        this.reset();
        for (const { targetModel: model, part: server, target, scores } of servers)
          this.set({ model, server, target }, readScore(scores) / 100);
      },
    });
  }
}

/** Rejects when the database does not answer; the gauges then keep their values. */
function createRecentReader(store: Store, world: AccuracyMetricsDependencies['world']): () => Promise<RecentScores> {
  const readNewestTimes = createNewestTimesReader(store, world);
  let recent: RecentScores = { podTypes: [], servers: [] };
  let readMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    const [podTypes, servers] = await Promise.all([
      readNewestTimes(),
      listNewestServerSums(store, world.nowMs() - SERVER_MS),
    ]);
    recent = { podTypes: podTypes.flatMap(toScoredPart), servers: servers.flatMap(toScoredPart) };
    readMs = world.monotonicMs();
  }

  return async () => {
    if (world.monotonicMs() - readMs < FRESH_MS) return recent;
    reading ??= read().finally(() => {
      reading = undefined;
    });
    await reading;
    return recent;
  };
}

function toScoredPart({ targetModel, part, target, sums }: PartSums): ScoredPart[] {
  const scores = toScores(sums);
  return scores === undefined ? [] : [{ targetModel, part, target, scores }];
}
