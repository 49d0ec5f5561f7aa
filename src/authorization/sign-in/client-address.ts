import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';

/** Where the request comes from, as far as the configured proxies are trusted; `-` when nobody can say. */
export function clientAddress(c: Context<HttpEnv>): string {
  return c.get('clientAddress') ?? '-';
}
