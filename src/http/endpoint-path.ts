/**
 * Finds the endpoint of a request by its path, which may have one `{name}`. It matches any text, slashes included.
 */
import type { Endpoint } from './endpoint.ts';
import type { ReplyStyle, RouteMount } from './mount.ts';

export interface MountedEndpoint {
  readonly endpoint: Endpoint;
  /** The whole path. */
  readonly path: string;
  readonly errors: ReplyStyle;
}

export interface FoundEndpoint {
  readonly mounted: MountedEndpoint;
  /** The value of the `{name}`, as it was sent; empty when the path has none. */
  readonly parameter: string;
}

export type FindEndpoint = (method: string, path: string) => FoundEndpoint | undefined;

/** Finds the endpoint of a path. If several paths with a parameter match, the longest is found. */
export function createEndpointFinder(endpoints: readonly MountedEndpoint[]): FindEndpoint {
  const exact = new Map<string, FoundEndpoint>();
  const patterns: Pattern[] = [];
  for (const mounted of endpoints) {
    const pattern = readPattern(mounted);
    if (pattern === undefined) exact.set(`${mounted.endpoint.method} ${mounted.path}`, { mounted, parameter: '' });
    else patterns.push(pattern);
  }
  patterns.sort((left, right) => right.mounted.path.length - left.mounted.path.length);
  return (method, path) => exact.get(`${method} ${path}`) ?? findPattern(patterns, method, path);
}

/** Converts the path for a router that writes a parameter as `:name{pattern}`. */
export function toRoutePath(path: string): string {
  return path.replace(/\{(\w+)\}/, ':$1{.+}');
}

interface Pattern {
  readonly mounted: MountedEndpoint;
  readonly prefix: string;
  readonly suffix: string;
}

function readPattern(mounted: MountedEndpoint): Pattern | undefined {
  const [prefix, suffix] = mounted.path.split(/\{\w+\}/);
  return prefix === undefined || suffix === undefined ? undefined : { mounted, prefix, suffix };
}

function findPattern(patterns: readonly Pattern[], method: string, path: string): FoundEndpoint | undefined {
  for (const { mounted, prefix, suffix } of patterns) {
    if (mounted.endpoint.method !== method || path.length <= prefix.length + suffix.length) continue;
    if (path.startsWith(prefix) && path.endsWith(suffix))
      return { mounted, parameter: path.slice(prefix.length, path.length - suffix.length) };
  }
  return undefined;
}

export function listEndpoints({ path, errors, endpoints = [] }: RouteMount): MountedEndpoint[] {
  if (errors === 'page') return [];
  return endpoints.map((endpoint) => ({ endpoint, errors, path: joinPaths(path, endpoint.path) }));
}

function joinPaths(mountPath: string, path: string): string {
  if (path === '/') return mountPath;
  return mountPath === '/' ? path : mountPath + path;
}
