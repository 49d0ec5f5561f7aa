/** Renders the manifests of deploy/kubernetes from the chart, so that users without Helm get the same objects. */
import { findExample, type Renderer } from './chart.ts';

interface Manifest {
  readonly file: string;
  readonly title: string;
  readonly example: string;
  /** The templates to leave out, or the only one to use. */
  readonly without?: readonly string[];
  readonly only?: string;
}

const MANIFESTS: readonly Manifest[] = [
  {
    file: 'deploy/kubernetes/base/trivet.yaml',
    title: 'Trivet on PostgreSQL.',
    example: 'kustomize',
  },
  {
    file: 'deploy/kubernetes/sidecar.yaml',
    title: 'A gateway with Trivet beside it: predictions over a unix socket that the two share.',
    example: 'sidecar',
  },
  {
    file: 'deploy/kubernetes/llm-d/predictor.yaml',
    title:
      "Trivet as the predictor of llm-d's router, of the Gateway API Inference Extension and of KServe, for one target model.",
    example: 'llm-d',
    without: ['templates/kserve.yaml'],
  },
  {
    file: 'deploy/kubernetes/llm-d/kserve-latency-predictor.yaml',
    title: 'Change "default" to the namespace of predictor.yaml, and apiVersion to that of your KServe.',
    example: 'llm-d',
    only: 'templates/kserve.yaml',
  },
];

/** The labels that name Helm as the owner of an object. */
const OF_HELM = /^ *(app\.kubernetes\.io\/managed-by|helm\.sh\/chart): .*\n/gm;

/** Returns the text of each manifest by path. */
export function renderManifests(renderer: Renderer): ReadonlyMap<string, string> {
  return new Map(MANIFESTS.map((manifest) => [manifest.file, renderManifest(renderer, manifest)]));
}

function renderManifest(renderer: Renderer, { title, example, without = [], only }: Manifest): string {
  const { files } = renderer.render(findExample(example));
  const texts = Object.entries(files)
    .filter(([path]) => path.endsWith('.yaml') && !without.includes(path) && (only ?? path) === path)
    .map(([, text]) =>
      text
        .replaceAll(OF_HELM, '')
        .trim()
        .replace(/^---\n/, ''),
    )
    .filter((text) => text !== '');
  const source = `# Rendered from ${findExample(example)} by \`npm run manifests\`; change it there.`;
  return `# ${title}\n${source}\n${texts.join('\n---\n')}\n`;
}
