/** The chart, as Helm itself takes it: what the other tests know of it they know from our own renderer. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { buildRenderer, CHART, findExample, type Renderer } from '../../scripts/helm/chart.ts';
import { type Helm, openHelm, helmSkip as skip } from '../support/deploy/helm-program.ts';

const EXAMPLES = ['embedded', 'postgresql', 'parts', 'sidecar', 'llm-d', 'openshift', 'kustomize'];

let helm: Helm;
let renderer: Renderer;
before(() => {
  if (skip !== false) return;
  helm = openHelm();
  renderer = buildRenderer();
});
after(() => {
  helm?.[Symbol.dispose]();
  renderer?.[Symbol.dispose]();
});

interface Named {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

function parseSorted(text: string): Named[] {
  const resources = parseAllDocuments(text).map((document) => document.toJS({}) as Named | null);
  const nameOf = ({ kind, metadata }: Named) => `${kind} ${metadata.name}`;
  return resources.filter((one) => one !== null).sort((one, other) => nameOf(one).localeCompare(nameOf(other)));
}

for (const example of EXAMPLES)
  test(`helm accepts ${example}.yaml, and renders what our renderer renders`, { skip }, () => {
    const values = ['--values', findExample(example)];
    assert.match(helm.run('lint', '--strict', CHART, ...values), /1 chart\(s\) linted, 0 chart\(s\) failed/);
    const { files } = renderer.render(findExample(example));
    const ours = Object.entries(files).filter(([path]) => path.endsWith('.yaml'));
    const rendered = helm.run('template', 'trivet', CHART, ...values);
    assert.deepEqual(parseSorted(rendered), parseSorted(ours.map(([, text]) => text).join('\n---\n')));
  });

test('helm prints the notes of an installation', { skip }, () => {
  const output = helm.run('install', 'trivet', CHART, '--dry-run=client');
  assert.match(output, /NOTES:\nThe link that creates the first account is in the output:/);
});

for (const [title, value, message] of [
  ['a value that does not exist', 'replicaCount=2', /additional properties 'replicaCount' not allowed/],
  ['two processes on an embedded store', 'components.all.replicas=2', /embedded store has one process/],
] as const)
  test(`helm refuses ${title}, with the reason`, { skip }, () =>
    assert.throws(() => helm.run('template', 'trivet', CHART, '--set', value), message),
  );
