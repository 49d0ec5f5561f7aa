/**
 * Checks resources against the JSON schemas of Kubernetes and of the Prometheus operator, as the packages `kubernetes-models` compile
 * them. A compiled schema reads every property that it describes, so a property that it never reads is unknown to Kubernetes.
 */
import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { Job } from 'kubernetes-models/batch/v1/Job';
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim';
import { Pod } from 'kubernetes-models/v1/Pod';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';

/** Each with its apiVersion, its kind and the method that checks an object of it. */
const KINDS = [
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  Job,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PodMonitor,
  Service,
  ServiceAccount,
  ServiceMonitor,
];

export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: unknown;
}

/** Returns the mistakes of a resource, or undefined if no schema for its kind is here. */
export function findMistakes(resource: Resource): readonly string[] | undefined {
  const known = KINDS.find(({ apiVersion, kind }) => apiVersion === resource.apiVersion && kind === resource.kind);
  if (known === undefined) return undefined;
  const recorder = recordReads();
  const wrong: string[] = [];
  try {
    known.prototype.validate.call(recorder.watch(resource));
  } catch (error) {
    wrong.push((error as Error).message);
  }
  return [...wrong, ...listUnread(resource, recorder.read, resource.kind)];
}

interface Recorder {
  readonly read: ReadonlyMap<object, ReadonlySet<PropertyKey>>;
  /** The same value, which records the properties that are read. */
  watch(value: unknown): unknown;
}

function recordReads(): Recorder {
  const read = new Map<object, Set<PropertyKey>>();
  function watch(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const names = read.get(value) ?? new Set();
    read.set(value, names);
    return new Proxy(value, {
      get(target, name) {
        names.add(name);
        return watch(Reflect.get(target, name));
      },
    });
  }
  return { read, watch };
}

function listUnread(value: unknown, read: Recorder['read'], path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const place = `${path}.${name}`;
    return read.get(value)?.has(name) ? listUnread(inner, read, place) : [`${place} is unknown`];
  });
}
