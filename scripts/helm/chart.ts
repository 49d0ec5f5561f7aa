/** Renders deploy/helm/trivet with render.go, which Go builds from Debian's packages without a network. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const CHART = 'deploy/helm/trivet';
/** The folder where Debian installs the Go sources of Sprig and of the Kubernetes YAML library. */
const DEBIAN_SOURCES = '/usr/share/gocode';

export interface RenderedChart {
  /** The values of the chart, merged with the given ones. */
  readonly values: unknown;
  /** The rendered text of each template by path. */
  readonly files: Readonly<Record<string, string>>;
}

export interface Renderer extends Disposable {
  /** Takes files of values; later files override earlier ones. Throws with the message of the template that refuses the values. */
  render(...valueFiles: readonly string[]): RenderedChart;
}

export function buildRenderer(): Renderer {
  const folder = mkdtempSync(join(tmpdir(), 'trivet-helm-'));
  const source = join(folder, 'src', 'render');
  const program = join(folder, 'render');
  mkdirSync(source, { recursive: true });
  copyFileSync('scripts/helm/render.go', join(source, 'render.go'));
  const environment = { GO111MODULE: 'off', GOPATH: `${folder}:${DEBIAN_SOURCES}`, GOFLAGS: '' };
  execFileSync('go', ['build', '-o', program, 'render'], { env: { ...process.env, ...environment } });
  return {
    render: (...valueFiles) => {
      const output = execFileSync(program, [CHART, 'trivet', 'default', ...valueFiles], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return JSON.parse(output) as RenderedChart;
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function findExample(name: string): string {
  return join(CHART, 'examples', `${name}.yaml`);
}
