/**
 * How good what was answered turned out to be, as series: for each part of a model over its last few hundred times, and
 * for the most recently reported servers. Computed on each scrape, so that an event costs a few stores.
 */
import { Gauge } from 'prom-client';
import type { Metrics } from '../../telemetry/metrics.ts';
import { median } from '../model/calibration.ts';
import { TARGETS } from '../schema/observation-table.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import type { AnsweredRow, LiveAccuracy } from './live-accuracy.ts';

const WINDOW = 300;
/** Callers name models and pod types as they like, and each of these is five series. */
const MAX_SLOTS = 256;
const MAX_SERVERS = 200;

interface Window {
  readonly labels: { readonly model: string; readonly pod_type: string; readonly target: string };
  readonly predicted: Float64Array;
  readonly observed: Float64Array;
  readonly covered: Uint8Array;
  count: number;
}

type Scores = Readonly<Record<keyof typeof HELP, number>>;

const HELP = {
  mape: 'Mean error of predictions, relative to the observed time.',
  mdape: 'Median error of predictions, relative to the observed time.',
  wape: 'Sum of the errors of predictions over the sum of observed times.',
  bias: 'Mean of what predictions were too long by, relative to the observed time.',
  p90_coverage: 'Share of observed times that were not above the predicted p90.',
} as const;

/** Returns the function that records every answer; `accuracy` knows the servers. */
export function createAccuracyMetrics(metrics: Metrics, accuracy: LiveAccuracy): (row: AnsweredRow) => void {
  const windows = new Map<string, Window>();
  for (const score of Object.keys(HELP) as (keyof typeof HELP)[])
    new Gauge({
      name: `trivet_prediction_${score}_ratio`,
      help: `${HELP[score]} Of the last ${WINDOW} times.`,
      labelNames: ['model', 'pod_type', 'target'],
      registers: [metrics],
      collect() {
        this.reset();
        for (const window of windows.values()) this.set(window.labels, measure(window)[score]);
      },
    });
  registerServers(metrics, accuracy);
  return ({ targetModel, podType, target, predictedMs, p90Ms, observedMs }) => {
    const name = normalizePodType(podType);
    const key = `${target} ${name} ${targetModel}`;
    const window = windows.get(key) ?? openWindow({ model: targetModel, pod_type: name || 'aggregate', target });
    // The most recently reported server comes last.
    windows.delete(key);
    windows.set(key, window);
    if (windows.size > MAX_SLOTS) windows.delete(windows.keys().next().value!);
    const at = window.count++ % WINDOW;
    window.predicted[at] = predictedMs;
    window.observed[at] = observedMs;
    window.covered[at] = observedMs <= p90Ms ? 1 : 0;
  };
}

function openWindow(labels: Window['labels']): Window {
  return {
    labels,
    predicted: new Float64Array(WINDOW),
    observed: new Float64Array(WINDOW),
    covered: new Uint8Array(WINDOW),
    count: 0,
  };
}

function measure({ predicted, observed, covered, count }: Window): Scores {
  const rows = Math.min(count, WINDOW);
  const errors = predicted.slice(0, rows).map((value, i) => value / observed[i]! - 1);
  const sum = (values: ArrayLike<number>) => Array.prototype.reduce.call(values, add, 0) as number;
  const misses = predicted.slice(0, rows).map((value, i) => Math.abs(value - observed[i]!));
  const sizes = errors.map(Math.abs).sort();
  return {
    mape: sum(sizes) / rows,
    mdape: median(sizes),
    wape: sum(misses) / sum(observed.subarray(0, rows)),
    bias: sum(errors) / rows,
    p90_coverage: sum(covered.subarray(0, rows)) / rows,
  };
}

function add(total: unknown, value: unknown): number {
  return Number(total) + Number(value);
}

function registerServers(metrics: Metrics, accuracy: LiveAccuracy): void {
  const series = [
    ['mape', 'mape'],
    ['mdape', 'mdape'],
    ['wape', 'wape'],
    ['bias', 'bias'],
    ['p90_coverage', 'p90Coverage'],
  ] as const;
  for (const [name, score] of series)
    new Gauge({
      name: `trivet_prediction_server_${name}_ratio`,
      help: `${HELP[name]} Of about the last 100 times of a server.`,
      labelNames: ['model', 'server', 'target'],
      registers: [metrics],
      collect() {
        this.reset();
        for (const { model, server, targets } of listNewestServers(accuracy))
          for (const target of TARGETS) {
            const scores = targets[target];
            if (scores !== undefined) this.set({ model, server, target }, scores[score] / 100);
          }
      },
    });
}

function listNewestServers(accuracy: LiveAccuracy) {
  return accuracy
    .listModels()
    .flatMap((model) => accuracy.listServers(model).map((server) => ({ model, ...server })))
    .sort((a, b) => b.lastMs - a.lastMs)
    .slice(0, MAX_SERVERS);
}
