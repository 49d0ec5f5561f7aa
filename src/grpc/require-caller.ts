import { Failure } from '../errors.ts';
import type { VerifyToken } from '../identity.ts';
import type {
  GrpcCall,
  GrpcClientStreamMethod,
  GrpcMethod,
  GrpcService,
  GrpcStreamMethod,
  GrpcUnaryMethod,
} from './service.ts';

/** `auto` asks for a bearer token unless the caller is on this machine, `on` always asks, `off` never. */
export type CallerMode = 'auto' | 'on' | 'off';

export interface CallerRule {
  readonly mode: CallerMode;
  readonly verifyToken: VerifyToken;
}

/** What is known of a caller, over gRPC and HTTP alike. */
export interface Caller {
  /** Lower-case name of a header or metadata entry. */
  header(name: string): string | undefined;
  readonly isLoopback: boolean;
}

/** Set by proxies: the one behind the loopback address is then somebody else. */
const PROXY_HEADERS = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

export function needsToken(mode: CallerMode, caller: Caller): boolean {
  if (mode !== 'auto') return mode === 'on';
  return !caller.isLoopback || PROXY_HEADERS.some((name) => caller.header(name) !== undefined);
}

/** Throws `unauthenticated` unless the caller shows a token that is valid. */
export async function checkToken(verifyToken: VerifyToken, caller: Caller): Promise<void> {
  const token = /^bearer +(\S+)$/i.exec(caller.header('authorization') ?? '')?.[1];
  if (token === undefined)
    throw new Failure('unauthenticated', 'Cannot answer: the call needs "authorization: Bearer <token>"');
  const identity = await verifyToken(token);
  if (identity === undefined)
    throw new Failure('unauthenticated', 'Cannot answer: the token is unknown, expired or revoked');
}

/** The same service for those only who may call it. Callers that need no token are still answered in the same turn. */
export function requireCaller(rule: CallerRule): (service: GrpcService) => GrpcService {
  if (rule.mode === 'off') return (service) => service;
  return (service) => ({ name: service.name, methods: service.methods.map((method) => guard(method, rule)) });
}

function guard(method: GrpcMethod, rule: CallerRule): GrpcMethod {
  switch (method.kind) {
    case 'unary':
      return guardUnary(method, rule);
    case 'client-stream':
      return guardClientStream(method, rule);
    case 'stream':
      return guardStream(method, rule);
  }
}

function guardClientStream(method: GrpcClientStreamMethod, rule: CallerRule): GrpcClientStreamMethod {
  return {
    ...method,
    handle: async (requests, call) => {
      await checkCaller(rule, call);
      return method.handle(requests, call);
    },
  };
}

function guardStream(method: GrpcStreamMethod, rule: CallerRule): GrpcStreamMethod {
  return {
    ...method,
    async *handle(requests, call) {
      await checkCaller(rule, call);
      yield* method.handle(requests, call);
    },
  };
}

function guardUnary(method: GrpcUnaryMethod, rule: CallerRule): GrpcUnaryMethod {
  const checkThenHandle = async (request: Uint8Array, call: GrpcCall): Promise<Uint8Array> => {
    await checkToken(rule.verifyToken, toCaller(call));
    const answer = method.handle(request, call);
    // The answer is sent in a later turn, and by then its buffer may hold that of another call.
    return answer instanceof Uint8Array ? new Uint8Array(answer) : answer;
  };
  return {
    ...method,
    handle: (request, call) =>
      needsToken(rule.mode, toCaller(call)) ? checkThenHandle(request, call) : method.handle(request, call),
  };
}

async function checkCaller(rule: CallerRule, call: GrpcCall): Promise<void> {
  const caller = toCaller(call);
  if (needsToken(rule.mode, caller)) await checkToken(rule.verifyToken, caller);
}

function toCaller(call: GrpcCall): Caller {
  return { header: (name) => call.metadata(name), isLoopback: call.isLoopback };
}
