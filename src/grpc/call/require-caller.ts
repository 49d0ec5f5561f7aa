/** Decides which gRPC callers need a bearer token, and refuses with UNAUTHENTICATED or PERMISSION_DENIED. */
import { Failure } from '../../errors.ts';
import type { VerifyToken } from '../../identity.ts';
import { type NarrowScope, permits, refuseScope } from '../../scopes.ts';
import type { HeaderName } from '../http2/request-head.ts';
import type { GrpcCall, GrpcService } from './service.ts';

/** `auto` requires a bearer token unless the caller is on this machine, `on` always, `off` never. */
export type CallerMode = 'auto' | 'on' | 'off';

export interface CallerRule {
  readonly mode: CallerMode;
  readonly verifyToken: VerifyToken;
}

/** A caller, over gRPC or HTTP. */
export interface Caller {
  /** The value of a header or metadata entry. */
  header(name: HeaderName): string | undefined;
  readonly isLoopback: boolean;
}

/** Headers set by proxies: the real client is then not on loopback. */
const PROXY_HEADERS: readonly HeaderName[] = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

export function needsToken(mode: CallerMode, caller: Caller): boolean {
  if (mode !== 'auto') return mode === 'on';
  return !caller.isLoopback || PROXY_HEADERS.some((name) => caller.header(name) !== undefined);
}

/** Throws `unauthenticated` unless the caller sends a token, and rejects unless the token is valid and has the scope. */
export function checkToken({ verifyToken }: CallerRule, caller: Caller, scope: NarrowScope): Promise<void> {
  const token = /^bearer +(\S+)$/i.exec(caller.header('authorization') ?? '')?.[1];
  if (token === undefined)
    throw new Failure('unauthenticated', 'Cannot answer: the call needs "authorization: Bearer <token>"');
  return verifyShownToken(verifyToken, token, scope);
}

async function verifyShownToken(verifyToken: VerifyToken, token: string, scope: NarrowScope): Promise<void> {
  const identity = await verifyToken(token);
  if (identity === undefined)
    throw new Failure('unauthenticated', 'Cannot answer: the token is unknown, expired or revoked');
  if (!permits(identity, scope)) throw refuseScope(scope);
}

/** Returns the service with a check of its callers. Callers that need no token are still answered in the same turn. */
export function requireCaller(rule: CallerRule, scope: NarrowScope): (service: GrpcService) => GrpcService {
  if (rule.mode === 'off') return (service) => service;
  const check = (call: GrpcCall): Promise<void> | undefined => {
    const caller = toCaller(call);
    return needsToken(rule.mode, caller) ? checkToken(rule, caller, scope) : undefined;
  };
  return (service) => ({ name: service.name, methods: service.methods.map((method) => ({ ...method, check })) });
}

function toCaller(call: GrpcCall): Caller {
  return { header: (name) => call.metadata(name), isLoopback: call.isLoopback };
}
