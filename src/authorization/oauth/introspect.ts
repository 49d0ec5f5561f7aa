/**
 * Answers token introspection (RFC 7662), and decides who may introspect which tokens. An application may introspect its own
 * tokens; a resource server (an application that "may introspect") and a personal token with the scope `admin`, all tokens. Any
 * other token is answered with only `{"active":false}` (§2.2).
 */
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import { hashSecret, isSecretOf } from '../accounts/secret-text.ts';
import { findLivePersonalToken } from '../tokens/personal-token-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { identify } from '../tokens/require-scope.ts';
import { findLiveToken, type LiveToken } from '../tokens/token-store.ts';
import { createVerifyToken, listEffectiveScopes, recordTokenUse } from '../tokens/verify-token.ts';
import { authenticateClient, readClient } from './protocol/client-authentication.ts';
import { refuseClient } from './protocol/oauth-error.ts';
import { type RequestParameters, readParameters, requireParameter } from './protocol/parameters.ts';
import { UNCACHED } from './token.ts';

/** The caller, who may introspect all tokens or those of one client. */
interface Asker {
  readonly clientId: string | undefined;
  readonly seesAll: boolean;
}

const INACTIVE = { active: false };

export async function answerIntrospection(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const parameters = await readParameters(call);
  const asker = await findAsker(dependencies, call, parameters);
  const token = requireParameter(parameters.values, 'token');
  return replyJson((await describeToken(dependencies, token, asker)) ?? INACTIVE, UNCACHED);
}

async function findAsker(
  dependencies: ProtocolDependencies,
  call: Call,
  parameters: RequestParameters,
): Promise<Asker> {
  const authorization = call.header('authorization');
  if (authorization !== undefined && /^bearer /i.test(authorization)) {
    const { clientId, isAdmin, tokenKind } = await identify(call, createVerifyToken(dependencies));
    return { clientId, seesAll: isAdmin && tokenKind === 'personal' };
  }
  const presented = readClient(authorization, parameters);
  const { clientId } = presented;
  if (clientId === undefined) throw refuseClient();
  const client = await authenticateClient(dependencies, { ...presented, clientId }, call.clientAddress);
  if (!client.isAuthenticated) throw refuseClient();
  return { clientId, seesAll: client.application.mayIntrospect };
}

async function describeToken(
  dependencies: ProtocolDependencies,
  token: string,
  asker: Asker,
): Promise<object | undefined> {
  const nowMs = dependencies.world.nowMs();
  if (isSecretOf('personal', token)) return asker.seesAll ? describePersonal(dependencies, token, nowMs) : undefined;
  const kind = isSecretOf('access', token) ? 'access' : 'refresh';
  if (kind === 'refresh' && !isSecretOf('refresh', token)) return undefined;
  const live = await findLiveToken(dependencies.store, kind, { hash: hashSecret(token), nowMs });
  if (live === undefined || !(asker.seesAll || asker.clientId === live.clientId)) return undefined;
  return describeLive(dependencies, live);
}

function describeLive({ issuer }: ProtocolDependencies, token: LiveToken): object {
  return {
    active: true,
    scope: formatEffective(token.scope.split(' '), token.user?.isAdmin ?? false),
    client_id: token.clientId,
    ...(token.user === undefined ? {} : { username: token.user.login }),
    ...(token.kind === 'access' ? { token_type: 'Bearer' } : {}),
    exp: toSeconds(token.expiresAtMs),
    iat: toSeconds(token.issuedAtMs),
    sub: token.user?.id ?? token.clientId,
    iss: issuer,
  };
}

/** Formats only the effective scopes: a resource server trusts this answer as the service trusts the token. */
function formatEffective(scopes: readonly string[], isAdmin: boolean): string {
  return listEffectiveScopes(scopes, isAdmin).join(' ');
}

/** Also records a use of the token: a resource server introspects a token when it receives it. */
async function describePersonal(
  dependencies: ProtocolDependencies,
  token: string,
  nowMs: number,
): Promise<object | undefined> {
  const personal = await findLivePersonalToken(dependencies.store, hashSecret(token), nowMs);
  if (personal === undefined) return undefined;
  recordTokenUse(dependencies, personal, nowMs);
  return {
    active: true,
    scope: formatEffective(personal.scopes, personal.isAdmin),
    ...(personal.repositories === undefined ? {} : { repositories: personal.repositories }),
    username: personal.login,
    token_type: 'Bearer',
    ...(personal.expiresAtMs === undefined ? {} : { exp: toSeconds(personal.expiresAtMs) }),
    iat: toSeconds(personal.createdAtMs),
    sub: personal.userId,
    iss: dependencies.issuer,
  };
}

function toSeconds(timeMs: number): number {
  return Math.floor(timeMs / 1000);
}
