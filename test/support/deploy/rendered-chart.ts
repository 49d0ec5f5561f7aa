/** Renders the chart for a test file, and checks the result as Kubernetes and an operator do. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Ajv } from 'ajv';
import { parseAllDocuments } from 'yaml';
import { buildRenderer, CHART, findExample, type RenderedChart, type Renderer } from '../../../scripts/helm/chart.ts';
import { settings } from '../../../src/config/settings.ts';
import { skipWithout } from '../basics/client-tools.ts';
import { findMistakes, type Resource } from './kubernetes-schemas.ts';
import { findOperationalMistakes } from './operational-rules.ts';

/** For `{ skip }`: the reason not to render here, or false. */
export const chartSkip = skipWithout(
  'golang-go golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev',
  ['go', 'version'],
  ['ls', '/usr/share/gocode/src/github.com/Masterminds/sprig', '/usr/share/gocode/src/sigs.k8s.io/yaml'],
);

/** Kinds for which no package has a schema. */
const WITHOUT_SCHEMA = ['LLMInferenceServiceConfig'];

export const knownSettings = new Set(
  Object.values(settings).flatMap((section) => Object.values(section).map(({ env }) => env)),
);

/** Checks values against their schema; `errors` has those of the last call. */
export const checkValues = new Ajv({ allowUnionTypes: true }).compile(
  JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')),
);

export interface TestChart {
  /** Available once the tests run. */
  readonly renderer: Renderer;
  /** Further values as text, beside those of an example. */
  renderWith(values: string, example?: string): RenderedChart;
}

/** Builds the renderer before the tests of a file. */
export function useChart(): TestChart {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-chart-'));
  let renderer: Renderer;
  before(() => {
    if (chartSkip === false) renderer = buildRenderer();
  });
  after(() => {
    renderer?.[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });
  return {
    get renderer() {
      return renderer;
    },
    renderWith: (values, example) => {
      const file = join(folder, 'values.yaml');
      writeFileSync(file, values);
      return renderer.render(...(example === undefined ? [] : [findExample(example)]), file);
    },
  };
}

export function listResources({ files }: RenderedChart): Resource[] {
  return Object.entries(files)
    .filter(([path]) => path.endsWith('.yaml'))
    .flatMap(([, text]) => parseResources(text));
}

export function parseResources(text: string): Resource[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS({}) as Resource | null)
    .filter((resource) => resource !== null);
}

export function checkResources(resources: readonly Resource[]): void {
  assert.ok(resources.length > 0);
  for (const resource of resources) {
    const mistakes = findMistakes(resource);
    if (mistakes === undefined) assert.ok(WITHOUT_SCHEMA.includes(resource.kind), `no schema for ${resource.kind}`);
    assert.deepEqual(mistakes ?? [], [], `${resource.kind} ${resource.metadata.name}`);
  }
  assert.deepEqual(findOperationalMistakes(resources, knownSettings), []);
}
