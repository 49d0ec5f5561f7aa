/**
 * Exchanges a refresh token for new tokens, with rotation (RFC 6749 §6, RFC 9700 §4.14.2). GitCode's clients send the token
 * alone; credentials that are sent are checked before the token is used.
 */

import { hashSecret, isSecretOf } from '../../accounts/secret-text.ts';
import type { TokenAnswer, TokenPair } from '../../tokens/issue-tokens.ts';
import {
  createSuccessorSeed,
  deriveSuccessor,
  formatTokenAnswer,
  toNewAccess,
  toNewRefresh,
} from '../../tokens/issue-tokens.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import { rotateRefresh } from '../../tokens/rotation-store.ts';
import { findAccessTokenOfAnyAge, findLiveToken } from '../../tokens/token-store.ts';
import { refuseClient, refuseGrant, refuseWiderScope } from '../protocol/oauth-error.ts';
import { requireParameter } from '../protocol/parameters.ts';
import type { Grant } from './grant.ts';
import { checkGrantAllowed, refuseGrantType } from './require-client.ts';

export const refreshTokens: Grant = async (dependencies, exchange) => {
  const { client, nowMs } = exchange;
  if (client !== undefined) checkGrantAllowed(client.application, 'refresh_token');
  const oldToken = requireParameter(exchange.values, 'refresh_token');
  if (!isSecretOf('refresh', oldToken)) throw refuseGrant();
  const successorSeed = createSuccessorSeed(dependencies.world);
  const pair = deriveSuccessor(oldToken, successorSeed);
  const access = toNewAccess(dependencies, pair.accessToken, nowMs);
  const outcome = await dependencies.store.call(rotateRefresh, {
    tokenHash: hashSecret(oldToken),
    nowMs,
    graceMs: dependencies.settings.refreshGraceSeconds * 1000,
    clientId: client?.application.clientId,
    isAuthenticated: client?.isAuthenticated ?? false,
    askedScope: exchange.values.get('scope'),
    access,
    refresh: toNewRefresh(dependencies, pair.refreshToken, nowMs),
    successorSeed,
    address: exchange.address,
  });
  switch (outcome.kind) {
    case 'rotated':
      return formatTokenAnswer({ ...pair, scope: outcome.scope, issuedAtMs: nowMs, expiresAtMs: access.expiresAtMs });
    case 'repeated':
      return repeatAnswer(dependencies, nowMs, { ...deriveSuccessor(oldToken, outcome.successorSeed), ...outcome });
    case 'scope_too_wide':
      throw refuseWiderScope();
    case 'unauthenticated':
      throw refuseClient();
    case 'not_allowed':
      throw refuseGrantType('refresh_token');
    case 'refused':
      throw refuseGrant();
  }
};

/**
 * Returns the same answer as the first request did, byte for byte: the client lost that answer, or two tabs refreshed at once. If
 * the access token has been swept meanwhile, the row of the new refresh token has the time when both were issued.
 */
async function repeatAnswer(
  dependencies: ProtocolDependencies,
  nowMs: number,
  answered: TokenPair & { readonly scope: string },
): Promise<TokenAnswer> {
  const { store } = dependencies;
  const access = await findAccessTokenOfAnyAge(store, hashSecret(answered.accessToken));
  if (access !== undefined) return formatTokenAnswer({ ...answered, ...access });
  const refresh = await findLiveToken(store, 'refresh', { hash: hashSecret(answered.refreshToken), nowMs });
  if (refresh === undefined) throw refuseGrant();
  const { issuedAtMs } = refresh;
  const { expiresAtMs } = toNewAccess(dependencies, answered.accessToken, issuedAtMs);
  return formatTokenAnswer({ ...answered, issuedAtMs, expiresAtMs });
}
