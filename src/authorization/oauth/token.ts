/** Serves `POST /oauth/token`: authenticates the client and runs the grant; each grant is a file in grants/. */
import { type Failure, isFailure } from '../../errors.ts';
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import type { GrantType } from '../applications/application-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import type { CountToken, TokenKind } from '../tokens/token-metrics.ts';
import { exchangeCode } from './grants/authorization-code.ts';
import { grantToClient } from './grants/client-credentials.ts';
import { exchangeDeviceCode } from './grants/device-code.ts';
import type { Exchange, Grant } from './grants/grant.ts';
import { refreshTokens } from './grants/refresh-token.ts';
import { type AuthenticatedClient, authenticateClient, readClient } from './protocol/client-authentication.ts';
import { createOAuthFailure } from './protocol/oauth-error.ts';
import { type RequestParameters, readParameters, requireParameter } from './protocol/parameters.ts';

interface ListedGrant {
  /** The name of the grant in applications and metrics. */
  readonly type: GrantType;
  readonly exchange: Grant;
}

/** The grants by `grant_type`. A new one needs a line here, a file in grants/, and its name in `GRANT_TYPES`. */
export const GRANTS: ReadonlyMap<string, ListedGrant> = new Map<string, ListedGrant>([
  ['authorization_code', { type: 'authorization_code', exchange: exchangeCode }],
  ['refresh_token', { type: 'refresh_token', exchange: refreshTokens }],
  ['client_credentials', { type: 'client_credentials', exchange: grantToClient }],
  ['urn:ietf:params:oauth:grant-type:device_code', { type: 'device_code', exchange: exchangeDeviceCode }],
]);

/** Headers that keep caches from storing credentials (RFC 6749 §5.1). */
export const UNCACHED = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;

export async function answerTokenRequest(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const parameters = await readParameters(call);
  const grantType = requireParameter(parameters.values, 'grant_type');
  const grant = GRANTS.get(grantType);
  return await countGrant(dependencies.countToken, grant?.type ?? 'other', async () => {
    if (grant === undefined) throw refuseGrantTypes();
    const address = call.clientAddress;
    const client = await findClient(dependencies, { parameters, authorization: call.header('authorization'), address });
    const exchange = { values: parameters.values, client, address, nowMs: dependencies.world.nowMs() };
    return replyJson(await runGrant(dependencies, grant.exchange, exchange), UNCACHED);
  });
}

function refuseGrantTypes(): Failure {
  return createOAuthFailure('unsupported_grant_type', `grant_type must be one of ${[...GRANTS.keys()].join(', ')}`);
}

/** Errors that do not count as refusals: the device polled before its user has decided. */
const UNDECIDED = ['authorization_pending', 'slow_down'];

async function countGrant(countToken: CountToken, kind: TokenKind, answer: () => Promise<Reply>): Promise<Reply> {
  try {
    const reply = await answer();
    countToken(kind === 'refresh_token' ? 'refreshed' : 'issued', kind);
    return reply;
  } catch (error) {
    const oauthError = isFailure(error) ? error.details.oauthError : undefined;
    if (typeof oauthError === 'string' && !UNDECIDED.includes(oauthError)) countToken('refused', kind);
    throw error;
  }
}

interface ClientSource {
  readonly parameters: RequestParameters;
  readonly authorization: string | undefined;
  readonly address: string;
}

async function findClient(
  dependencies: ProtocolDependencies,
  source: ClientSource,
): Promise<AuthenticatedClient | undefined> {
  const presented = readClient(source.authorization, source.parameters);
  const { clientId } = presented;
  if (clientId !== undefined) return authenticateClient(dependencies, { ...presented, clientId }, source.address);
  if (presented.secret === undefined) return undefined;
  throw createOAuthFailure('invalid_request', 'client_secret was sent without client_id');
}

async function runGrant(dependencies: ProtocolDependencies, grant: Grant, exchange: Exchange) {
  const subject = `${exchange.client?.application.clientId ?? '-'}|${exchange.address}`;
  try {
    return await grant(dependencies, exchange);
  } catch (error) {
    // Counted after the check: over the limit, a right code or token is still accepted, and a wrong one is answered with 429.
    if (isFailure(error) && error.details.oauthError === 'invalid_grant')
      dependencies.limits.checkAndCount('grant', subject);
    throw error;
  }
}
