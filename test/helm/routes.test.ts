/** With its parts apart, the Ingress of the chart sends each path of the API to the process that serves it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { buildRenderer, findExample } from '../../scripts/helm/chart.ts';
import { skipWithout } from '../support/basics/client-tools.ts';
import { startProgram } from '../support/programs/start-program.ts';

const skip = skipWithout(
  'golang-go golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev',
  ['go', 'version'],
  ['ls', '/usr/share/gocode/src/github.com/Masterminds/sprig', '/usr/share/gocode/src/sigs.k8s.io/yaml'],
);

interface Ingress {
  readonly spec: {
    readonly rules: readonly {
      readonly http: {
        readonly paths: readonly {
          readonly path: string;
          readonly backend: { readonly service: { readonly name: string } };
        }[];
      };
    }[];
  };
}

/** The Service of the longest prefix, compared element by element. */
function findService({ spec }: Ingress, path: string): string | undefined {
  const routes = spec.rules.flatMap(({ http }) => http.paths);
  const fitting = routes.filter(
    (route) => route.path === '/' || path === route.path || path.startsWith(`${route.path}/`),
  );
  return fitting.sort((one, other) => other.path.length - one.path.length)[0]?.backend.service.name;
}

for (const part of ['prediction', 'authorization', 'webhooks'])
  test(`every documented path of a process with ${part} alone is routed to it`, { skip }, async () => {
    using renderer = buildRenderer();
    const { files } = renderer.render(findExample('parts'));
    const ingress = parse(files['templates/ingress.yaml'] ?? '') as Ingress;
    await using program = await startProgram({ PARTS: part });
    const document = (await (await fetch(`${program.httpUrl}/openapi.json`)).json()) as { readonly paths: object };
    const paths = Object.keys(document.paths);
    assert.ok(paths.length > 0);
    const elsewhere = paths.filter((path) => findService(ingress, path) !== `trivet-${part}`);
    assert.deepEqual(elsewhere, []);
  });
