import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

test('every series that the dashboard shows is one that the program counts', () => {
  const dashboard = JSON.parse(readFileSync('deploy/grafana-dashboard.json', 'utf8')) as Dashboard;
  const expressions = dashboard.panels.flatMap((panel) => panel.targets?.map((target) => target.expr) ?? []);
  const shown = new Set(expressions.flatMap((expression) => expression.match(/trivet_[a-z_]+/g) ?? []));
  const sources = globSync('src/**/*.ts').map((path) => readFileSync(path, 'utf8'));
  const counted = new Set(sources.flatMap((source) => source.match(/trivet_[a-z_]+/g) ?? []));
  assert.ok(shown.size > 5);
  const unknown = [...shown].filter((name) => !counted.has(name.replace(/_(bucket|count|sum)$/, '')));
  assert.deepEqual(unknown, []);
});
