/** Allows scripts of any origin to call endpoints that read no cookie (CORS). */
import { createMiddleware } from 'hono/factory';
import type { HttpEnv } from './context.ts';

export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'WWW-Authenticate, Retry-After',
} as const;

const PREFLIGHT_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, POST',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type',
  'Access-Control-Max-Age': '86400',
} as const;

export const allowCrossOrigin = createMiddleware<HttpEnv>(async (c, next) => {
  if (c.req.method === 'OPTIONS') return c.body(null, 204, PREFLIGHT_HEADERS);
  for (const [name, value] of Object.entries(CORS_HEADERS)) c.header(name, value);
  await next();
  return undefined;
});
