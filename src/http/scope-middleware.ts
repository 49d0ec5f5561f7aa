/** Declares the context of a request whose bearer token was checked. */
import type { MiddlewareHandler } from 'hono';
import type { Identity } from '../identity.ts';
import type { HttpEnv } from './context.ts';

export interface IdentityEnv extends HttpEnv {
  Variables: HttpEnv['Variables'] & { identity: Identity };
}

/** Middleware that lets a request pass only with a bearer token of this scope, and puts its `identity` into the context. */
export type RequireScope = (scope: string) => MiddlewareHandler<IdentityEnv>;
