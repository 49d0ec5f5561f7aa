/** Records the OpenTelemetry span of a gRPC call that has ended. */
import { traceIdOf } from '../../telemetry/trace-id.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { World } from '../../world.ts';
import { isOurFault } from '../protocol/status.ts';

export interface EndedCall {
  /** The path of the method, with its slash. */
  readonly path: string;
  readonly traceparent: string | undefined;
  /** Undefined if none was needed before. */
  readonly traceId: string | undefined;
  /** When the call began, in milliseconds of the monotonic clock. */
  readonly startedMs: number;
  /** The gRPC status code. */
  readonly code: number;
  readonly world: Pick<World, 'randomBytes' | 'nowMs' | 'monotonicMs'>;
}

/** Records the span of a call, with the attributes of OpenTelemetry's conventions for RPC. */
export function recordCallSpan(tracing: Tracing, call: EndedCall): void {
  const { path, traceparent, code, world } = call;
  tracing.record({
    name: path.slice(1),
    traceId: call.traceId ?? traceIdOf(traceparent, world),
    traceparent,
    endedAtMs: world.nowMs(),
    durationMs: world.monotonicMs() - call.startedMs,
    attributes: { 'rpc.system': 'grpc', 'rpc.grpc.status_code': code },
    hasFailed: isOurFault(code),
  });
}
