/**
 * Sends spans of requests and calls to an OpenTelemetry collector (OTLP over HTTP) when one is configured. A span is
 * recorded when its work has ended, so that untraced work costs one comparison with `undefined`.
 */
import type { DiagLogger, SpanContext, Tracer } from '@opentelemetry/api';
import { describeError } from '../errors.ts';
import { maskPasswords } from '../mask-passwords.ts';
import type { Log } from './log.ts';
import { type Caller, readTraceparent } from './trace-id.ts';

export interface EndedSpan {
  /** The name has few values, such as `GET /api/v5/user` or `prediction.v1.PredictionService/Predict`, and no text that a caller chose. */
  readonly name: string;
  /** The trace id of the log line of the same work: 32 lower-case hex digits. */
  readonly traceId: string;
  /** The span of the caller, if it sent one. */
  readonly traceparent: string | undefined;
  readonly endedAtMs: number;
  readonly durationMs: number;
  /** Attributes by their names in OpenTelemetry's semantic conventions. */
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The service is at fault, not the caller. */
  readonly hasFailed: boolean;
}

export interface Tracing {
  record(span: EndedSpan): void;
  /** Sends the remaining spans. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TracingConfig {
  /** The URL of the collector, without `/v1/traces`. */
  readonly endpoint: string | undefined;
  /** Headers as `name=value`, sent with every export. */
  readonly headers: readonly string[] | undefined;
  readonly serviceName: string;
  /** The sampled share of the traces that begin here, 0–1; a caller's decision about its trace is followed. */
  readonly sampleRatio: number;
}

/** How long a stop waits for a collector that does not answer. */
const EXPORT_TIMEOUT_MS = 3000;

/** Returns undefined without an endpoint; the libraries are loaded only with one. */
export async function openTracing(config: TracingConfig, log: Log): Promise<Tracing | undefined> {
  if (config.endpoint === undefined) return undefined;
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  api.diag.setLogger(toDiagLogger(log), { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  const ids = new sdk.RandomIdGenerator();
  let traceId = '';
  const exporter = new OTLPTraceExporter({
    url: `${config.endpoint}/v1/traces`,
    headers: readHeaders(config.headers),
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': config.serviceName }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(config.sampleRatio) }),
    // A trace that begins here has the id that its log line has.
    idGenerator: { generateTraceId: () => traceId, generateSpanId: () => ids.generateSpanId() },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter })],
  });
  const record = createRecorder(api, provider.getTracer('trivet'));
  return {
    record(ended) {
      traceId = ended.traceId;
      record(ended);
    },
    async [Symbol.asyncDispose]() {
      await provider.shutdown().catch((error: unknown) => {
        log.warn({ reason: maskPasswords(describeError(error)) }, 'Cannot send the last spans of traces');
      });
    },
  };
}

type TracingApi = typeof import('@opentelemetry/api');

/** Records the span of work that has ended, as a child of the caller's span. */
function createRecorder(api: TracingApi, tracer: Tracer): Tracing['record'] {
  const { context, SpanKind, SpanStatusCode, trace, TraceFlags } = api;
  const toParent = (caller: Caller): SpanContext => ({
    ...caller,
    traceFlags: caller.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  });
  return ({ name, traceparent, attributes, endedAtMs, durationMs, hasFailed }) => {
    const caller = readTraceparent(traceparent);
    const parent = caller === undefined ? context.active() : trace.setSpanContext(context.active(), toParent(caller));
    const startTime = endedAtMs - durationMs;
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, startTime, attributes }, parent);
    if (hasFailed) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(endedAtMs);
  };
}

/** The exporter's messages (a collector that is away, dropped spans) go to the log. */
function toDiagLogger(log: Log): DiagLogger {
  const at = (level: 'error' | 'warn' | 'info' | 'debug' | 'trace') => (message: string) =>
    log[level]({ reason: maskPasswords(message) }, 'tracing');
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug'), verbose: at('trace') };
}

/** Values are percent-encoded, as those of W3C Baggage are. */
function readHeaders(headers: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    headers.map((header) => [header.slice(0, header.indexOf('=')), decode(header.slice(header.indexOf('=') + 1))]),
  );
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
