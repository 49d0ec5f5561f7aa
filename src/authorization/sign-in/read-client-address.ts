import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';

/** The client's address by the configured trusted proxies; `-` when it is unknown. */
export function clientAddress(c: Context<HttpEnv>): string {
  return c.get('clientAddress') ?? '-';
}
