import type { World } from '../world.ts';

/** The caller's trace id, or a new one when it sent none that is valid. 32 lower-case hex digits. */
export function traceIdOf(traceparent: string | undefined, world: Pick<World, 'randomBytes'>): string {
  return readTraceId(traceparent) ?? Buffer.from(world.randomBytes(16)).toString('hex');
}

/** W3C Trace Context: `version-traceid-parentid-flags`; an all-zero id is invalid. */
function readTraceId(traceparent: string | undefined): string | undefined {
  const match = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent ?? '');
  return match?.[1] === '0'.repeat(32) ? undefined : match?.[1];
}
