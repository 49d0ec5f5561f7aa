/** Values that would lose data, open a port or never start are refused before anything is applied. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkValues, listResources, chartSkip as skip, useChart } from '../support/deploy/rendered-chart.ts';

const chart = useChart();

const refused: readonly (readonly [title: string, values: string, message: RegExp])[] = [
  ['two processes on an embedded store', 'components: { all: { replicas: 2 } }', /embedded store has one process/],
  [
    'a part in two components',
    'components: { webhooks: { enabled: true } }\ndatabase: { existingSecret: a }',
    /runs in two/,
  ],
  ['no component at all', 'components: { all: { enabled: false } }', /nothing is enabled/],
  ['llm-d without a model', 'llmD: { enabled: true }', /llmD\.model must name/],
  [
    'an open port of llm-d in spite of a policy',
    'llmD: { enabled: true, model: m }\nnetworkPolicy: { enabled: true }',
    /llmD\.routerLabels or llmD\.from must name/,
  ],
  ...['Qwen/Qwen3-32B', '-m', 'm'.repeat(64)].map(
    (model) =>
      [
        `to select a metric by the model ${model}`,
        `serverAutoscaling: [{ deployment: vllm, model: ${model}, maxReplicas: 2 }]`,
        /serverAutoscaling: .* cannot be the value of a label; use .*autoscaling-keda\.yaml/,
      ] as const,
  ),
  ['an ingress without a host', 'ingress: { enabled: true }', /ingress\.host must be set/],
  ['a stop that would be cut off', 'preStopSeconds: 20', /terminationGracePeriodSeconds must be more than 40/],
  [
    'a stop that a setting makes too long',
    'settings: { STOP_TIMEOUT_MS: 60000 }',
    /terminationGracePeriodSeconds must be more than 65/,
  ],
  [
    'a stop that a setting of one component makes too long',
    'components: { all: { settings: { STOP_TIMEOUT_MS: 40000 } } }',
    /components\.all: terminationGracePeriodSeconds must be more than 45/,
  ],
  [
    'a stop that a setting of the sidecar makes too long',
    'sidecar: { enabled: true, gateway: { image: a }, settings: { STOP_TIMEOUT_MS: 40000 } }',
    /sidecar: terminationGracePeriodSeconds must be more than 40/,
  ],
  ...['STOP_TIMEOUT_MS', 'DATABASE_POOL_SIZE'].map(
    (name) =>
      [
        `${name} where the chart does not see it`,
        `extraEnv: [{ name: ${name}, value: "60000" }]`,
        new RegExp(`extraEnv: the chart computes with ${name}: put it in settings`),
      ] as const,
  ),
  ...['HOST', 'HTTP_PORT', 'GRPC_PORT', 'LLM_D_PORT', 'TRIVET_DATA_DIR', 'PARTS'].flatMap((name) =>
    [
      `settings: { ${name}: 1 }`,
      `components: { all: { settings: { ${name}: 1 } } }`,
      `extraEnv: [{ name: ${name}, value: "1" }]`,
    ].map((values) => [values, values, new RegExp(`components\\.all: ${name} is the chart's`)] as const),
  ),
  [
    'a folder of the sidecar that is no volume',
    'sidecar: { enabled: true, gateway: { image: a }, settings: { TRIVET_DATA_DIR: /elsewhere } }',
    /sidecar: TRIVET_DATA_DIR is the chart's/,
  ],
  [
    'a port of the sidecar that its probes do not follow',
    'components: { all: { enabled: false } }\nsidecar: { enabled: true, gateway: { image: a } }\nextraEnv: [{ name: HTTP_PORT, value: "1" }]',
    /sidecar: HTTP_PORT in extraEnv .* put it in sidecar\.settings/,
  ],
  ['a sidecar without a gateway', 'sidecar: { enabled: true }', /sidecar\.gateway\.image must name/],
];

for (const [title, values, message] of refused)
  test(`the chart refuses ${title}`, { skip }, () => assert.throws(() => chart.renderWith(values), message));

test('a stop that waits for no call needs no time for that', { skip }, () => {
  const values = 'settings: { STOP_TIMEOUT_MS: 0 }\nterminationGracePeriodSeconds: 6';
  const parts = 'components: { all: { parts: [authorization] } }';
  assert.ok(listResources(chart.renderWith(`${values}\n${parts}`)).length > 0);
  assert.throws(() => chart.renderWith(values), /must be more than 25/, 'attempts of deliveries take their time');
});

for (const values of [
  'replicaCount: 2',
  'settings: { log_level: debug }',
  'trustedProxies: 10.0.0.0/8',
  'publicUrl: trivet',
])
  test(`the schema refuses ${values}`, { skip }, () =>
    assert.equal(checkValues(chart.renderWith(values).values), false),
  );
