import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';

/** The address the connection came from; `-` where there is no socket (a request made in process). */
export function clientAddress(c: Context<HttpEnv>): string {
  const hasSocket = (c.env as { incoming?: unknown } | undefined)?.incoming !== undefined;
  const address = hasSocket ? getConnInfo(c).remote.address : undefined;
  return address?.replace(/^::ffff:/, '') ?? '-';
}
