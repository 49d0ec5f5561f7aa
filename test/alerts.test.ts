/** The alerts: played to promtool, and asked of a real Prometheus that reads the real program. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { findFreePort } from './support/basics/free-port.ts';
import { waitUntil } from './support/basics/wait-until.ts';
import { startProgram } from './support/programs/start-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-alerts-'));
after(() => rmSync(folder, { recursive: true }));
const RULES = 'deploy/prometheus-rules.yaml';

const skip = isInstalled('promtool') || process.env.CI === 'true' ? false : 'Prometheus is not installed';

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

test('each alert fires on its fault, and none on a healthy service', { skip }, () => {
  copyFileSync(RULES, join(folder, 'prometheus-rules.yaml'));
  copyFileSync('test/fixtures/alerts.yaml', join(folder, 'alerts.yaml'));
  const run = (argv: string[]) => execFileSync('promtool', argv, { cwd: folder, encoding: 'utf8' });
  assert.match(run(['check', 'rules', 'prometheus-rules.yaml']), /SUCCESS/);
  assert.match(run(['test', 'rules', 'alerts.yaml']), /SUCCESS/);
});

test('panels show samples once, however many processes counted them', { skip }, () => {
  const series = (instance: string) =>
    `{ series: 'trivet_prediction_samples{model="m", waiting="0", kv_cache="0", prefix="0", length="1", instance="${instance}"}', values: '40x60' }`;
  const shown = listExpressions().filter((expr) => expr.includes('trivet_prediction_samples'));
  assert.equal(shown.length, 2);
  const checks = shown.map(
    (expr) => `      - expr: sum(${expr})
        eval_time: 10m
        exp_samples: [{ labels: '{}', value: 40 }]`,
  );
  const played = `tests:
  - interval: 1m
    input_series: [${series('a')}, ${series('b')}]
    promql_expr_test:
${checks.join('\n')}
`;
  writeFileSync(join(folder, 'samples.yaml'), played);
  const output = execFileSync('promtool', ['test', 'rules', 'samples.yaml'], { cwd: folder, encoding: 'utf8' });
  assert.match(output, /SUCCESS/);
});

interface Answer {
  readonly status: string;
  readonly data: { readonly result: readonly unknown[]; readonly groups: readonly RuleGroup[] };
}

interface RuleGroup {
  readonly rules: readonly { readonly name: string; readonly health: string; readonly lastError?: string }[];
}

test('a real Prometheus reads the program and answers every expression of rules and dashboard', { skip }, async () => {
  await using program = await startProgram();
  const port = await findFreePort();
  const config = `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${process.cwd()}/${RULES}']
scrape_configs:
  - { job_name: trivet, static_configs: [{ targets: ['${new URL(program.httpUrl).host}'] }] }
`;
  writeFileSync(join(folder, 'prometheus.yaml'), config);
  const flags = [`--config.file=${join(folder, 'prometheus.yaml')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
  const prometheus = spawn('prometheus', [...flags, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  const ended = once(prometheus, 'exit');
  try {
    const ask = async (path: string): Promise<Answer> => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
      return (await response.json()) as Answer;
    };
    const query = (expression: string) => ask(`query?${new URLSearchParams({ query: expression }).toString()}`);
    // It takes a few seconds to start and to read for the first time.
    await waitUntil(() =>
      query('up{job="trivet"} == 1').then(
        ({ data }) => data.result.length === 1,
        () => false,
      ),
    );
    for (const expression of listExpressions()) assert.equal((await query(expression)).status, 'success', expression);
    await waitUntil(() =>
      listRules(ask).then(
        (rules) => rules.every(({ health }) => health !== 'unknown'),
        () => false,
      ),
    );
    const rules = await listRules(ask);
    assert.ok(rules.length > 15);
    assert.deepEqual(
      rules.filter(({ health }) => health !== 'ok'),
      [],
    );
    for (const series of [
      'process_open_fds',
      'process_max_fds',
      'process_start_time_seconds',
      'trivet_database_waiting',
    ])
      assert.equal((await query(`${series}{job="trivet"}`)).data.result.length, 1, series);
  } finally {
    prometheus.kill('SIGKILL');
    await ended;
  }
});

async function listRules(ask: (path: string) => Promise<Answer>) {
  return (await ask('rules')).data.groups.flatMap(({ rules }) => rules);
}

function listExpressions(): string[] {
  const { panels } = JSON.parse(readFileSync('deploy/grafana-dashboard.json', 'utf8')) as {
    panels: { targets?: { expr: string }[] }[];
  };
  const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return shown.map((expr) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$model', '.*'));
}
