/**
 * Records every request: its trace id, one log line without the query, its duration (a Prometheus histogram, with its buckets) and its
 * span. A probe gets one line at the level `trace`, no duration and no span. The query is left out because the API v5 permits secrets there.
 */
import type { Socket } from 'node:net';
import { Histogram } from 'prom-client';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { traceIdOf } from '../telemetry/trace-id.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { World } from '../world.ts';
import { createAddressReader } from './client-address.ts';

/** The facts of a request that are known before a handler reads it. */
export interface RequestSource {
  /** Undefined for a request that is made in process. */
  readonly socket: Socket | undefined;
  /** The header `X-Forwarded-For`. */
  readonly forwardedFor: string | undefined;
  readonly traceparent: string | undefined;
}

export interface RequestStart {
  readonly startedMs: number;
  readonly traceId: string;
  readonly traceparent: string | undefined;
  readonly clientAddress: string;
}

export interface RequestEnd {
  readonly method: string;
  readonly path: string;
  /** The pattern that answered, such as /repos/:owner/:repo: paths would give an unlimited number of names. */
  readonly route: string;
  readonly status: number;
  readonly isProbe?: boolean | undefined;
}

export interface RequestObserver {
  start(source: RequestSource): RequestStart;
  end(start: RequestStart, end: RequestEnd): void;
}

export interface ObserverDependencies {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly world: World;
  readonly tracing?: Tracing | undefined;
  /** Addresses or ranges of proxies whose `X-Forwarded-For` is trusted; empty unless given. */
  readonly trustedProxies?: readonly string[];
}

export function createRequestObserver({
  log,
  metrics,
  world,
  tracing,
  trustedProxies,
}: ObserverDependencies): RequestObserver {
  const seconds = new Histogram({
    name: 'trivet_http_request_duration_seconds',
    help: 'Time from the head of a request to the head of its answer.',
    labelNames: ['method', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15],
    registers: [metrics],
  });
  const readClientAddress = createAddressReader(trustedProxies ?? []);
  return {
    start: ({ socket, forwardedFor, traceparent }) => ({
      startedMs: world.monotonicMs(),
      traceId: traceIdOf(traceparent, world),
      traceparent,
      clientAddress: readClientAddress(socket, forwardedFor),
    }),
    end: ({ startedMs, traceId, traceparent }, { method, path, route, status, isProbe }) => {
      const durationMs = world.monotonicMs() - startedMs;
      const line = { traceId, method, path, status, durationMs: Math.round(durationMs * 1000) / 1000 };
      if (isProbe || PROBES.has(path)) {
        log.trace(line, 'request');
        return;
      }
      seconds.observe({ method, status }, durationMs / 1000);
      log.info(line, 'request');
      tracing?.record({
        name: `${method} ${route}`,
        traceId,
        traceparent,
        endedAtMs: world.nowMs(),
        durationMs,
        attributes: { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status },
        hasFailed: status >= 500,
      });
    },
  };
}

/** Kubernetes probes a pod every second or two: in a quiet service, probes would outnumber requests and hide failures. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);
