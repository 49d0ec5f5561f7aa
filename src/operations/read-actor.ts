/** Reads who calls an operation, after the check of the scope. */
import type { Context } from 'hono';
import type { IdentityEnv } from '../http/scope-middleware.ts';
import type { Actor } from './operation.ts';

/** Returns the caller. Must be called after `requireScope`. */
export function readActor(c: Context<IdentityEnv>): Actor {
  const { userId, login, clientId, repositories, isAdmin } = c.get('identity');
  return { userId, login, clientId, repositories, isAdmin, address: c.get('clientAddress') ?? '-' };
}
