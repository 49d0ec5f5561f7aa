/**
 * The chart, rendered with Go's template engine and Sprig as Helm uses them; helm.test.ts compares that with Helm itself. Each resource is
 * held against the schemas of Kubernetes, and against what an operator expects of it.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { findExample } from '../../scripts/helm/chart.ts';
import { renderManifests } from '../../scripts/helm/manifests.ts';
import { skipWithout } from '../support/basics/client-tools.ts';
import { findMistakes, type Resource } from '../support/deploy/kubernetes-schemas.ts';
import { findOperationalMistakes } from '../support/deploy/operational-rules.ts';
import {
  checkResources,
  checkValues,
  knownSettings,
  listResources,
  parseResources,
  chartSkip as skip,
  useChart,
} from '../support/deploy/rendered-chart.ts';

const EXAMPLES = ['embedded', 'postgresql', 'parts', 'sidecar', 'llm-d', 'openshift', 'kustomize'];
const chart = useChart();

interface Probed {
  readonly readinessProbe: { readonly grpc?: object; readonly httpGet?: object };
}

test('the chart without values is a service on an embedded store', { skip }, () => {
  const rendered = chart.renderWith('{}');
  assert.equal(checkValues(rendered.values), true, JSON.stringify(checkValues.errors));
  const resources = listResources(rendered);
  checkResources(resources);
  const kinds = resources.map(({ kind }) => kind).sort();
  assert.deepEqual(kinds, ['Deployment', 'PersistentVolumeClaim', 'Service', 'Service', 'ServiceAccount']);
});

for (const example of EXAMPLES)
  test(`the values of ${example}.yaml fit their schema, and each resource fits Kubernetes`, { skip }, () => {
    const rendered = chart.renderer.render(findExample(example));
    assert.equal(checkValues(rendered.values), true, JSON.stringify(checkValues.errors));
    checkResources(listResources(rendered));
    assert.ok((rendered.files['templates/NOTES.txt'] ?? '').trim().length > 0);
  });

test('parts apart are Deployments of their own, scaled and routed apart', { skip }, () => {
  const resources = listResources(chart.renderer.render(findExample('parts')));
  const named = (kind: string) => resources.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);
  assert.deepEqual(named('Deployment').sort(), ['trivet-authorization', 'trivet-prediction', 'trivet-webhooks']);
  assert.deepEqual(named('HorizontalPodAutoscaler').sort(), ['trivet-prediction', 'vllm']);
  assert.equal(named('PodDisruptionBudget').length, 3);
  const ingress = JSON.stringify(resources.find(({ kind }) => kind === 'Ingress'));
  assert.match(
    ingress,
    /"path":"\/api\/v5\/user","pathType":"Prefix","backend":\{"service":\{"name":"trivet-authorization"/,
  );
  assert.match(ingress, /"path":"\/api\/v5","pathType":"Prefix","backend":\{"service":\{"name":"trivet-webhooks"/);
});

test('the ServiceMonitor gives all processes the scrape job that the alerts expect, whatever the release is called', {
  skip,
}, () => {
  const rules = readFileSync('deploy/prometheus-rules.yaml', 'utf8');
  const expected = new Set([...rules.matchAll(/\bjob="([^"]+)"/g)].map(([, job]) => job));
  for (const values of ['{}', '{ nameOverride: latency, fullnameOverride: prod }']) {
    const monitor = listResources(chart.renderWith(values, 'parts')).find(({ kind }) => kind === 'ServiceMonitor');
    assert.ok(monitor);
    const { endpoints } = monitor.spec as {
      readonly endpoints: readonly { readonly relabelings?: readonly object[] }[];
    };
    const jobs = endpoints.flatMap(({ relabelings = [] }) => relabelings);
    assert.deepEqual(
      jobs,
      [...expected].map((job) => ({ targetLabel: 'job', replacement: job })),
    );
    assert.equal(jobs.length, 1);
  }
});

test('a process that only predicts is ready without a database and before it has learned, also for llm-d', {
  skip,
}, () => {
  const readReadiness = (values: string, example: string) => {
    const { files } = chart.renderWith(values, example);
    const { spec } = parseResources(files['templates/deployment.yaml'] ?? '').find(
      ({ metadata }) => metadata.name === 'trivet-prediction',
    ) as { readonly spec: { readonly template: { readonly spec: { readonly containers: readonly Probed[] } } } };
    return spec.template.spec.containers[0]?.readinessProbe;
  };
  for (const example of ['parts', 'llm-d']) {
    assert.deepEqual(readReadiness('{}', example)?.grpc, { port: 50051 }, example);
    const tls = readReadiness('grpcTls: { existingSecret: tls }', example);
    assert.deepEqual(tls?.httpGet, { path: '/healthz', port: 'http' }, example);
  }
});

test('a sidecar is scraped once, alone and beside components', { skip }, () => {
  const monitor = 'serviceMonitor: { enabled: true, labels: { release: prometheus } }';
  const listMonitors = (values: string) => {
    const resources = listResources(chart.renderWith(`${monitor}\n${values}`, 'sidecar'));
    checkResources(resources);
    return resources.filter(({ kind }) => kind.endsWith('Monitor'));
  };
  const [podMonitor, ...others] = listMonitors('');
  assert.deepEqual([podMonitor?.kind, others], ['PodMonitor', []]);
  assert.equal(podMonitor?.metadata.labels?.release, 'prometheus');
  assert.match(JSON.stringify(podMonitor?.spec), /"targetLabel":"job"/);
  const both = listMonitors('components: { all: { enabled: true } }').map(({ kind }) => kind);
  assert.deepEqual(both.sort(), ['PodMonitor', 'ServiceMonitor']);
});

test('only the named peers reach the port of llm-d: routers of the namespace, and those of others', { skip }, () => {
  const listPeers = (values: string, example?: string) => {
    const { spec } = listResources(chart.renderWith(values, example)).find(({ kind }) => kind === 'NetworkPolicy') as {
      readonly spec: { readonly ingress: readonly { readonly from: unknown; readonly ports: object }[] };
    };
    return spec.ingress.find(({ ports }) => JSON.stringify(ports) === '[{"port":"llm-d"}]')?.from;
  };
  const router = { podSelector: { matchLabels: { app: 'my-router-epp' } } };
  const scheduler = { 'app.kubernetes.io/component': 'llminferenceservice-router-scheduler' };
  assert.deepEqual(listPeers('{}', 'llm-d'), [
    router,
    { namespaceSelector: {}, podSelector: { matchLabels: scheduler } },
  ]);
  const policy = 'networkPolicy: { enabled: true }';
  const peer = { namespaceSelector: { matchLabels: { team: 'a' } } };
  assert.deepEqual(listPeers(`llmD: { enabled: true, model: m, from: [${JSON.stringify(peer)}] }\n${policy}`), [peer]);
});

test('OpenShift chooses every user and group', { skip }, () => {
  const text = JSON.stringify(listResources(chart.renderer.render(findExample('openshift'))));
  assert.doesNotMatch(text, /runAsUser|runAsGroup|fsGroup/);
});

test('several gateways with a sidecar are spread, and a drain ends one at a time', { skip }, () => {
  const resources = listResources(chart.renderWith('sidecar: { replicas: 3 }', 'sidecar'));
  checkResources(resources);
  assert.ok(resources.some(({ kind }) => kind === 'PodDisruptionBudget'));
});

test('a sidecar leaves ports to its gateway: probes and Prometheus follow its own', { skip }, () => {
  for (const port of ['9090', '"9090"']) {
    const values = `sidecar: { settings: { HTTP_PORT: ${port}, GRPC_PORT: 9091 } }`;
    const resources = listResources(chart.renderWith(values, 'sidecar'));
    checkResources(resources);
    const text = JSON.stringify(resources);
    assert.match(text, /"ports":\[\{"name":"trivet-http","containerPort":9090\}\]/);
    assert.match(text, /"prometheus\.io\/port":"9090"/);
    assert.doesNotMatch(text, /8080|50051/);
  }
});

test('files of the operator, such as the authority of the database, are mounted in every process', { skip }, () => {
  const values = `extraVolumes: [{ name: ca, secret: { secretName: database-ca } }]
extraVolumeMounts: [{ name: ca, mountPath: /run/ca, readOnly: true }]`;
  for (const example of ['parts', 'sidecar']) {
    const rendered = chart.renderWith(values, example);
    assert.equal(checkValues(rendered.values), true, JSON.stringify(checkValues.errors));
    const resources = listResources(rendered);
    checkResources(resources);
    const deployments = resources.filter(({ kind }) => kind === 'Deployment').map((one) => JSON.stringify(one));
    assert.ok(deployments.length > 0);
    for (const text of deployments) {
      assert.match(text, /"volumeMounts":\[[^\]]*\{"mountPath":"\/run\/ca","name":"ca","readOnly":true\}/);
      assert.match(text, /\{"name":"ca","secret":\{"secretName":"database-ca"\}\}/);
    }
  }
});

test('a start may take as long as the migrations of an upgrade', { skip }, () => {
  for (const example of ['postgresql', 'sidecar']) {
    const text = JSON.stringify(listResources(chart.renderWith('startupSeconds: 7200', example)));
    assert.match(text, /"startupProbe":\{[^}]*\},"periodSeconds":1,"failureThreshold":7200\}/);
    assert.match(text, /"progressDeadlineSeconds":7260/, 'a rollout that waits for them has not failed');
  }
});

test('the notes warn of what is lost and of who is kept out', { skip }, () => {
  const notes = (values: string, example?: string) =>
    chart.renderWith(values, example).files['templates/NOTES.txt'] ?? '';
  assert.match(notes('{}'), /in the volume that an uninstall keeps/);
  assert.match(notes('persistence: { enabled: false }'), /are lost with the pod/);
  const closed = 'networkPolicy: { enabled: true }';
  assert.match(notes(closed, 'embedded'), /networkPolicy\.httpFrom is empty/);
  assert.doesNotMatch(notes('{}', 'parts'), /httpFrom is empty/);
});

test('whole numbers stay whole, also large ones', { skip }, () => {
  const { files } = chart.renderer.render(findExample('postgresql'));
  assert.match(files['templates/deployment.yaml'] ?? '', /name: GRPC_BUFFER_BYTES\n\s+value: "67108864"/);
});

test('a misspelt field and a wrong type in a resource are found', { skip }, () => {
  const { files } = chart.renderWith('{}');
  const text = files['templates/deployment.yaml'] ?? '';
  const broken = [text.replace('failureThreshold:', 'failureTreshold:'), text.replace('replicas: 1', 'replicas: one')];
  const [misspelt, wrong] = broken.map((manifest) => findMistakes(parseResources(manifest)[0] as Resource));
  assert.deepEqual(misspelt, ['Deployment.spec.template.spec.containers.0.startupProbe.failureTreshold is unknown']);
  assert.match(String(wrong), /\/spec\/replicas/);
});

const mistakes: readonly (readonly [right: string, wrong: string, mistake: RegExp])[] = [
  ['readOnlyRootFilesystem: true', 'readOnlyRootFilesystem: false', /may write to its root/],
  ['runAsNonRoot: true', 'runAsNonRoot: false', /may run as root/],
  ['drop: [ALL]', 'drop: []', /has capabilities/],
  [
    'terminationGracePeriodSeconds: 30',
    'terminationGracePeriodSeconds: 20',
    /may be killed while it stops, after 25 s/,
  ],
  [
    'httpGet: { path: /readyz, port: http }',
    'httpGet: { path: /readyz, port: htpp }',
    /readiness probe asks an unknown port/,
  ],
  ['name: PARTS', 'name: PART', /PART, which is not a setting/],
  ['- name: data\n', '- name: mislaid\n', /mounts the unknown volume data/],
  ['replicas: 1', 'replicas: 2', /a drain may end all of its pods/],
  ['targetPort: grpc', 'targetPort: gprc', /names the unknown port gprc/],
  [
    '  selector:\n    app.kubernetes.io/name: trivet',
    '  selector:\n    app.kubernetes.io/name: other',
    /selects the pods of 0 Dep/,
  ],
];

for (const [right, wrong, mistake] of mistakes)
  test(`the operational rules find ${wrong.split('\n').at(-1)?.trim()}`, { skip }, () => {
    const { files } = chart.renderWith('{}');
    const text = Object.values(files).join('\n---\n');
    assert.ok(text.includes(right), right);
    const broken = text.replaceAll(right, wrong);
    assert.match(findOperationalMistakes(parseResources(broken), knownSettings).join('\n'), mistake);
  });

test('the manifests of deploy/kubernetes are what the chart renders (npm run manifests)', { skip }, () => {
  for (const [file, text] of renderManifests(chart.renderer)) assert.equal(readFileSync(file, 'utf8'), text, file);
});

const skipKustomize = skipWithout('kubernetes-client', ['kubectl', 'version', '--client']);

interface Overlay {
  readonly namespace: string;
  readonly images: readonly { readonly newName: string; readonly newTag: string }[];
  readonly patches: readonly { readonly patch: string }[];
}

test('kustomize builds the overlay of the guide, whose addresses take the place of the example', {
  skip: skipKustomize,
}, () => {
  const guide = readFileSync('docs/how-to/install-on-kubernetes.md', 'utf8');
  const {
    patches,
    resources: _,
    ...rest
  } = parse(/```yaml\n(namespace:.*?)```/s.exec(guide)?.[1] ?? '') as Overlay & {
    readonly resources: unknown;
  };
  const overlay = mkdtempSync('deploy/kubernetes/overlay-');
  try {
    const files = patches.map(({ patch }, index) => {
      writeFileSync(join(overlay, `patch-${index}.yaml`), patch);
      return `patch-${index}.yaml`;
    });
    // The kustomize of Debian knows these names alone; newer ones take them too.
    const old = { ...rest, bases: ['../base'], patchesStrategicMerge: files };
    writeFileSync(join(overlay, 'kustomization.yaml'), JSON.stringify(old));
    const resources = parseResources(execFileSync('kubectl', ['kustomize', overlay], { encoding: 'utf8' }));
    checkResources(resources);
    const text = JSON.stringify(resources);
    assert.ok(text.includes(`"image":"${rest.images[0]?.newName}:${rest.images[0]?.newTag}"`));
    assert.equal(text.match(/"namespace":"predictions"/g)?.length, resources.length);
    assert.match(text, /"replicas":4/);
    assert.doesNotMatch(text, /trivet\.example\.com/, 'the issuer would be a stranger');
    for (const name of ['BASE_URL', 'AUTH_URL']) assert.match(text, new RegExp(`"name":"${name}","value":"https://`));
  } finally {
    rmSync(overlay, { recursive: true });
  }
});
