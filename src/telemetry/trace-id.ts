/** Reads the trace id of a caller (`traceparent`), or creates one (W3C Trace Context). */
import type { World } from '../world.ts';

/** The caller's span, which is the parent of the work. */
export interface Caller {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** The caller records this trace, so callees should record it too. */
  readonly isSampled: boolean;
}

/** Returns the caller's trace id, or a new one if it sent no valid one: 32 lower-case hex digits. */
export function traceIdOf(traceparent: string | undefined, world: Pick<World, 'randomBytes'>): string {
  return readTraceparent(traceparent)?.traceId ?? Buffer.from(world.randomBytes(16)).toString('hex');
}

/** `version-traceid-parentid-flags`; ids of nothing but zeros are invalid, and so is version ff (section 3.2.2). */
export function readTraceparent(traceparent: string | undefined): Caller | undefined {
  if (traceparent === undefined) return undefined;
  const match = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-|$)/.exec(
    traceparent,
  );
  if (match === null) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = match;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
