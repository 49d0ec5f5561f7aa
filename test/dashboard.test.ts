import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { waitUntil } from './support/basics/wait-until.ts';
import { observePool } from './support/prediction/observed-pool.ts';
import { type Program, startProgram } from './support/programs/start-program.ts';

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

const dashboard = JSON.parse(readFileSync('deploy/grafana-dashboard.json', 'utf8')) as Dashboard;
const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);

/** The series of an expression, without what a histogram puts behind its name. */
function listSeries(expression: string): string[] {
  const names = expression.match(/\b(?:trivet|process|nodejs)_[a-z0-9_]+/g) ?? [];
  return names.map((name) => name.replace(/_(bucket|count|sum)$/, ''));
}

function listLabels({ expr, legendFormat }: (typeof targets)[number]): string[] {
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap((match) => match[1]!.split(/,\s*/));
  return [...grouped, ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]!)];
}

async function readMetrics(program: Program): Promise<string> {
  return await (await fetch(`${program.httpUrl}/metrics`)).text();
}

/** Enough to learn from, and one question. */
async function usePrediction(program: Program): Promise<void> {
  const events = observePool({ rows: 120 }).map(({ input, ttftMs, tpotMs }) => ({
    observation: {
      targetModel: 'm',
      input: { ...input, serverIp: '10.0.0.1' },
      ttftMillis: ttftMs,
      tpotMillis: tpotMs,
    },
  }));
  const post = async (path: string, body: object) => {
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${program.httpUrl}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  };
  await post('observation.v1.ObservationService/ReportBatch', { events });
  const row = { kv_cache_percentage: 0, num_request_waiting: 0, num_request_running: 0, num_tokens_generated: 1 };
  await post('llm-d/m/predict', { ...row, input_token_length: 100, prefix_cache_score: 0 });
  await post('prediction.v1.PredictionService/Predict', { targetModel: 'm', inputs: [{ inputTokenLength: 100 }] });
}

test('every series that the dashboard shows, and the alerts ask for, is a series of the running program', async () => {
  await using program = await startProgram();
  const metrics = await readMetrics(program);
  const known = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]!));
  const alerts = listSeries(readFileSync('deploy/prometheus-rules.yaml', 'utf8'));
  assert.ok(alerts.length > 8);
  const shown = new Set([...targets.flatMap(({ expr }) => listSeries(expr)), ...alerts]);
  assert.ok(shown.size > 20);
  assert.deepEqual(
    [...shown].filter((name) => !known.has(name)),
    [],
  );
});

test('what the dashboard shows of predictions has values, with the labels that it groups by', async () => {
  await using program = await startProgram({ PREDICTION_REFIT_ROWS: '50' });
  await usePrediction(program);
  // The first version is learned in the background.
  const metrics = await waitUntil(async () => {
    const text = await readMetrics(program);
    return /^trivet_prediction_version_promoted_seconds\{/m.test(text) && text;
  });
  const rare = ['trivet_prediction_drift_alarms_total', 'trivet_prediction_incomplete_requests_total'];
  const shown = targets.filter(
    ({ expr }) => /trivet_(?:llm_d_)?predict/.test(expr) && !rare.some((name) => expr.includes(name)),
  );
  assert.ok(shown.length > 10);
  for (const target of shown)
    for (const name of listSeries(target.expr)) {
      const lines = metrics.split('\n').filter((line) => line.startsWith(name));
      assert.ok(lines.length > 0, `${name} has no value`);
      for (const label of listLabels(target)) assert.match(lines[0]!, new RegExp(`[{,]${label}="`), target.expr);
    }
});

/** Alerts on a quantile, as `histogram_quantile(…(rate(SERIES_bucket[5m]))) > THRESHOLD`. */
const QUANTILE_ALERT = /histogram_quantile\([^>]*?\b(\w+)_bucket\[[^>]*?\) > ([\d.]+)/g;

/** The upper bounds that the program has for each histogram, in ascending order. */
function listBounds(metrics: string): ReadonlyMap<string, readonly number[]> {
  const bounds = new Map<string, Set<number>>();
  for (const [, name = '', bound = ''] of metrics.matchAll(/^(\w+)_bucket\{(?:.*,)?le="([^"]+)"/gm)) {
    const known = bounds.get(name) ?? new Set();
    bounds.set(name, known.add(Number(bound.replace('+Inf', 'Infinity'))));
  }
  return new Map([...bounds].map(([name, known]) => [name, [...known].sort((a, b) => a - b)]));
}

test('each threshold of an alert on a quantile is a bound of its histogram, with a finite one above it', async () => {
  await using program = await startProgram();
  const bounds = listBounds(await readMetrics(program));
  const rules = readFileSync('deploy/prometheus-rules.yaml', 'utf8');
  const alerts = [...rules.matchAll(QUANTILE_ALERT)];
  assert.equal(alerts.length, rules.match(/histogram_quantile/g)?.length);
  for (const [, name = '', threshold] of alerts) {
    const known = bounds.get(name) ?? [];
    const place = known.indexOf(Number(threshold));
    // A quantile in the last bucket is its lower bound, which never exceeds itself.
    assert.ok(place >= 0 && place < known.length - 2, `${name} > ${threshold} of the bounds ${known.join(', ')}`);
  }
});

test('the buckets that are played to the alerts are those of the program', async () => {
  await using program = await startProgram();
  const bounds = listBounds(await readMetrics(program));
  const played = [...listBounds(readFileSync('test/fixtures/alerts.yaml', 'utf8').replace(/^.*series: '/gm, ''))];
  assert.ok(played.length >= 2);
  for (const [name, some] of played)
    assert.deepEqual(
      some.filter((bound) => !bounds.get(name)?.includes(bound)),
      [],
    );
});
