/** What the chart tells an operator after an installation: how to leave the embedded store, and what PostgreSQL has to admit. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findExample, type RenderedChart } from '../../scripts/helm/chart.ts';
import { chartSkip as skip, useChart } from '../support/deploy/rendered-chart.ts';

const EXAMPLES = ['embedded', 'postgresql', 'parts', 'sidecar', 'llm-d', 'openshift', 'kustomize'];
const chart = useChart();

function readNotes({ files }: RenderedChart): string {
  return files['templates/NOTES.txt'] ?? '';
}

test('the notes of an embedded store name the guide to PostgreSQL, since the setting alone moves nothing', {
  skip,
}, () => {
  const notes = readNotes(chart.renderWith('{}'));
  assert.doesNotMatch(notes, /moves it/);
  const [, file = '', heading = ''] = /as (\S+\.md) says under "(.+)"/.exec(notes) ?? [];
  assert.match(readFileSync(file, 'utf8'), new RegExp(`^### ${heading}$`, 'm'));
});

for (const example of EXAMPLES)
  test(`PostgreSQL admits all processes of ${example}.yaml by default`, { skip }, () => {
    assert.doesNotMatch(readNotes(chart.renderer.render(findExample(example))), /max_connections/);
  });

const pools: [title: string, values: string, example: string, connections: number | undefined][] = [
  ['as many as PostgreSQL admits', 'components: { all: { replicas: 6 } }', 'kustomize', undefined],
  ['too many of one component', 'settings: { DATABASE_POOL_SIZE: 8 }', 'postgresql', 121],
  ['too many without a pool size', 'components: { all: { replicas: 7 } }', 'kustomize', 104],
  ['too many of all components', 'settings: { DATABASE_POOL_SIZE: "6" }', 'parts', 99],
  [
    'a sidecar beside components',
    'sidecar: { enabled: true, replicas: 4, gateway: { image: "gateway:1" } }',
    'kustomize',
    104,
  ],
];
for (const [title, values, example, connections] of pools)
  test(`the notes count the connections to PostgreSQL: ${title}`, { skip }, () => {
    const [, counted, needed] =
      /may have (\d+) connections .* raise it to (\d+),/.exec(readNotes(chart.renderWith(values, example))) ?? [];
    const expected = connections === undefined ? [undefined, undefined] : [connections, connections + 3].map(String);
    assert.deepEqual([counted, needed], expected);
  });
