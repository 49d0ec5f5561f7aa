/** Checks the manifests of a release as an operator does: dangling references, excessive rights, lost work. */
import type { Resource } from './kubernetes-schemas.ts';

interface Container {
  readonly name: string;
  readonly image: string;
  readonly ports?: readonly { readonly name: string }[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly name: string }[];
  readonly resources?: { readonly requests?: object; readonly limits?: Readonly<Record<string, string>> };
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly lifecycle?: { readonly preStop?: { readonly sleep?: { readonly seconds: number } } };
  readonly [probe: `${string}Probe`]: Readonly<Record<string, { readonly port: number | string }>> | undefined;
}

interface Pod {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds: number;
}

type Labels = Readonly<Record<string, string>>;

interface DeploymentSpec {
  readonly replicas?: number;
  readonly selector: { readonly matchLabels: Labels };
  readonly template: {
    readonly metadata: { readonly labels: Labels; readonly annotations?: Labels };
    readonly spec: Pod;
  };
}

/** The default of STOP_TIMEOUT_MS, in seconds; attempts of deliveries take longer. */
const STOP_SECONDS = 15;
const DELIVERY_STOP_SECONDS = 20;

type Rule = (resources: readonly Resource[], settings: ReadonlySet<string>) => string[];

/** Every mistake, as `object: what is wrong`. */
export function findOperationalMistakes(resources: readonly Resource[], settings: ReadonlySet<string>): string[] {
  return [checkPods, checkSelectors, checkScaling, checkScraped, checkIngress].flatMap((rule) =>
    rule(resources, settings),
  );
}

interface Selected<Spec> {
  readonly name: string;
  readonly labels: Labels;
  readonly spec: Spec;
}

function select<Spec>(resources: readonly Resource[], kind: string): Selected<Spec>[] {
  return resources
    .filter((resource) => resource.kind === kind)
    .map(({ metadata, spec }) => ({ name: metadata.name, labels: metadata.labels ?? {}, spec: spec as Spec }));
}

const checkPods: Rule = (resources, settings) =>
  select<DeploymentSpec>(resources, 'Deployment').flatMap(({ name, spec }) => {
    const pod = spec.template.spec;
    const containers = [...(pod.initContainers ?? []), ...pod.containers];
    const own = containers.filter((container) => container.name === 'trivet');
    const mistakes = [
      pod.securityContext?.runAsNonRoot !== true && 'may run as root',
      !isDeepEqual(pod.securityContext?.seccompProfile, { type: 'RuntimeDefault' }) && 'has no seccomp profile',
      pod.automountServiceAccountToken !== false && 'gets a token of the Kubernetes API',
      own.length !== 1 && 'has not one container of Trivet',
      ...containers.flatMap((container) => checkContainer(container, pod)),
      ...own.flatMap((container) => checkOwnContainer(container, pod, settings)),
    ];
    return mistakes.filter((mistake) => mistake !== false).map((mistake) => `${name}: ${mistake}`);
  });

function checkContainer({ name, securityContext, volumeMounts = [] }: Container, pod: Pod): (string | false)[] {
  const volumes = new Set(pod.volumes?.map((volume) => volume.name));
  return [
    securityContext?.allowPrivilegeEscalation !== false && `${name} may gain privileges`,
    !isDeepEqual(securityContext?.capabilities, { drop: ['ALL'] }) && `${name} has capabilities`,
    ...volumeMounts.map((mount) => !volumes.has(mount.name) && `${name} mounts the unknown volume ${mount.name}`),
  ];
}

function checkOwnContainer(container: Container, pod: Pod, settings: ReadonlySet<string>): (string | false)[] {
  const { env = [], ports = [], resources, securityContext, lifecycle } = container;
  const delivers = env.some(({ name, value = '' }) => name === 'PARTS' && value.split(',').includes('webhooks'));
  const workSeconds = delivers ? DELIVERY_STOP_SECONDS : STOP_SECONDS;
  const stopSeconds = (lifecycle?.preStop?.sleep?.seconds ?? 0) + workSeconds;
  const isSidecar = !pod.containers.includes(container);
  const probes = isSidecar ? ['startup', 'liveness'] : ['startup', 'liveness', 'readiness'];
  const names = env.map((variable) => variable.name);
  return [
    securityContext?.readOnlyRootFilesystem !== true && 'may write to its root',
    securityContext?.runAsUser !== undefined && 'has a fixed user',
    resources?.requests === undefined && 'requests no resources',
    resources?.limits?.memory === undefined && 'has no limit of memory',
    resources?.limits?.cpu !== undefined && 'is throttled',
    pod.terminationGracePeriodSeconds <= stopSeconds && `may be killed while it stops, after ${stopSeconds} s`,
    ...names.map((name) => !settings.has(name) && `sets ${name}, which is not a setting`),
    ...names.map((name, index) => names.indexOf(name) !== index && `sets ${name} twice`),
    ...probes.map((probe) => checkProbe(probe, container, new Set(ports.map((port) => port.name)))),
  ];
}

function checkProbe(probe: string, container: Container, ports: ReadonlySet<string>): string | false {
  const { httpGet } = container[`${probe}Probe`] ?? {};
  if (container[`${probe}Probe`] === undefined) return `has no ${probe} probe`;
  return httpGet !== undefined && !ports.has(String(httpGet.port)) && `its ${probe} probe asks an unknown port`;
}

/** Checks that Services, budgets and policies select pods of exactly one Deployment, and name ports of these pods. */
const checkSelectors: Rule = (resources) => {
  const deployments = select<DeploymentSpec>(resources, 'Deployment');
  const findSelected = (labels: Labels) =>
    deployments.filter(({ spec }) => matches(labels, spec.template.metadata.labels)).map(({ spec }) => spec);
  const services = select<{ readonly selector: Labels; readonly ports: readonly { readonly targetPort: string }[] }>(
    resources,
    'Service',
  );
  const budgets = select<{ readonly selector: { readonly matchLabels: Labels } }>(resources, 'PodDisruptionBudget');
  const policies = select<{
    readonly podSelector: { readonly matchLabels: Labels };
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
  }>(resources, 'NetworkPolicy');
  const selections = [
    ...deployments.map(({ name, spec }) => ({ name, labels: spec.selector.matchLabels, ports: [] as string[] })),
    ...services.map(({ name, spec }) => ({
      name,
      labels: spec.selector,
      ports: spec.ports.map((port) => port.targetPort),
    })),
    ...budgets.map(({ name, spec }) => ({ name, labels: spec.selector.matchLabels, ports: [] })),
    ...policies.map(({ name, spec }) => ({
      name,
      labels: spec.podSelector.matchLabels,
      ports: spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port)),
    })),
  ];
  return selections.flatMap(({ name, labels, ports }) => {
    const selected = findSelected(labels);
    if (selected.length !== 1) return [`${name}: selects the pods of ${selected.length} Deployments`];
    const known = new Set(
      selected[0]?.template.spec.containers.flatMap((container) => container.ports ?? []).map((port) => port.name),
    );
    return ports.filter((port) => !known.has(port)).map((port) => `${name}: names the unknown port ${port}`);
  });
};

/** An autoscaler owns the number of replicas, and several replicas have a budget and are spread. */
const checkScaling: Rule = (resources) => {
  const scaled = new Set(
    select<{ readonly scaleTargetRef: { readonly name: string } }>(resources, 'HorizontalPodAutoscaler').map(
      ({ spec }) => spec.scaleTargetRef.name,
    ),
  );
  const budgets = new Set(select(resources, 'PodDisruptionBudget').map(({ name }) => name));
  return select<DeploymentSpec>(resources, 'Deployment').flatMap(({ name, spec }) => {
    const isMany = scaled.has(name) || (spec.replicas ?? 1) > 1;
    const isSpread = 'topologySpreadConstraints' in spec.template.spec;
    return [
      ...(scaled.has(name) && spec.replicas !== undefined ? [`${name}: replicas are reset at each upgrade`] : []),
      ...(isMany && !budgets.has(name) ? [`${name}: a drain may end all of its pods`] : []),
      ...(isMany && !isSpread ? [`${name}: all pods may be on one node`] : []),
    ];
  });
};

/** Where Prometheus is configured, it scrapes each pod once: by a Service, by its labels or by its annotation. */
const checkScraped: Rule = (resources) => {
  const services = select<{ readonly selector: Labels }>(resources, 'Service');
  const selectors = [
    ...selectMonitors(resources, 'ServiceMonitor').flatMap((wanted) =>
      services.filter(({ labels }) => matches(wanted, labels)).map(({ spec }) => spec.selector),
    ),
    ...selectMonitors(resources, 'PodMonitor'),
  ];
  return select<DeploymentSpec>(resources, 'Deployment').flatMap(({ name, spec }) => {
    const { labels, annotations = {} } = spec.template.metadata;
    const monitors = selectors.filter((selector) => matches(selector, labels)).length;
    const scrapes = monitors + (annotations['prometheus.io/scrape'] === 'true' ? 1 : 0);
    return scrapes === 1 ? [] : [`${name}: is scraped ${scrapes} times`];
  });
};

function selectMonitors(resources: readonly Resource[], kind: string): Labels[] {
  const monitors = select<{ readonly selector: { readonly matchLabels: Labels } }>(resources, kind);
  return monitors.map(({ spec }) => spec.selector.matchLabels);
}

const checkIngress: Rule = (resources) => {
  const services = new Set(select(resources, 'Service').map(({ name }) => name));
  const named = select<unknown>(resources, 'Ingress').flatMap(({ spec }) =>
    [...JSON.stringify(spec).matchAll(/"service":\{"name":"([^"]+)"/g)].map(([, service = '']) => service),
  );
  return named
    .filter((service) => !services.has(service))
    .map((service) => `Ingress: routes to the unknown ${service}`);
};

function matches(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function isDeepEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
