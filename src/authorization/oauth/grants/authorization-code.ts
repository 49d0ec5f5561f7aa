/**
 * Exchanges an authorization code for tokens: checks client, redirect URI and PKCE verifier (RFC 6749 §4.1.3). `redirect_uri`
 * may be left out (GitCode's clients do); when sent it must be right.
 */
import { hashSecret, isSecretOf } from '../../accounts/secret-text.ts';
import {
  computeFamilyEnd,
  createTokenPair,
  formatTokenAnswer,
  toNewAccess,
  toNewRefresh,
} from '../../tokens/issue-tokens.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import { drawsDeletion } from '../../tokens/surplus-tokens-store.ts';
import { countCodeFailure, findCode, type IssuedCode, redeemCode } from '../protocol/code-store.ts';
import { createIdToken, findIdTokenKey } from '../protocol/id-token.ts';
import { refuseGrant } from '../protocol/oauth-error.ts';
import { type ParameterValues, requireParameter } from '../protocol/parameters.ts';
import { isVerifierRight } from '../protocol/pkce.ts';
import type { Grant } from './grant.ts';
import { requireClient } from './require-client.ts';

export const exchangeCode: Grant = async (dependencies, exchange) => {
  const application = requireClient(exchange, 'authorization_code');
  const text = requireParameter(exchange.values, 'code');
  const codeHash = hashSecret(text);
  const code = isSecretOf('code', text) ? await findCode(dependencies.store, codeHash) : undefined;
  if (code === undefined) throw refuseGrant();
  await checkExchange(dependencies, { code, codeHash, clientId: application.clientId, values: exchange.values });
  const idTokenKey = await findIdTokenKey(dependencies, code.scope);

  const { nowMs, address } = exchange;
  const { clientId } = application;
  const pair = createTokenPair(dependencies.world);
  const access = toNewAccess(dependencies, pair.accessToken, nowMs);
  const canRefresh = application.grantTypes.includes('refresh_token');
  const issued = { userId: code.userId, clientId, address, scope: code.scope, nowMs };
  using issue = dependencies.issueLog.prepare(issued);
  const outcome = await dependencies.store.call(redeemCode, {
    codeHash,
    clientId,
    nowMs,
    familyId: dependencies.world.uuid(),
    familyExpiresAtMs: computeFamilyEnd(dependencies, nowMs),
    tokens: { access, refresh: canRefresh ? toNewRefresh(dependencies, pair.refreshToken, nowMs) : undefined },
    audit: issue.statements,
    deletesSurplus: drawsDeletion(dependencies.world),
    address,
  });
  if (outcome === 'refused') throw refuseGrant();
  issue.count();
  return formatTokenAnswer({
    accessToken: pair.accessToken,
    refreshToken: canRefresh ? pair.refreshToken : undefined,
    scope: code.scope,
    issuedAtMs: nowMs,
    expiresAtMs: access.expiresAtMs,
    idToken: await createIdToken(dependencies, idTokenKey, { ...code, clientId, accessToken: pair.accessToken, nowMs }),
  });
};

interface CheckedExchange {
  readonly code: IssuedCode;
  readonly codeHash: Uint8Array;
  readonly clientId: string;
  readonly values: ParameterValues;
}

/** Throws unless this exchange may redeem the code. `redeemCode` decides whether it was used before. */
async function checkExchange(
  dependencies: ProtocolDependencies,
  { code, codeHash, clientId, values }: CheckedExchange,
): Promise<void> {
  if (code.clientId !== clientId) throw refuseGrant();
  const redirectUri = values.get('redirect_uri');
  if (redirectUri !== undefined && redirectUri !== code.redirectUri) throw refuseGrant();
  if (isVerifierRight(code.codeChallenge, values.get('code_verifier'))) return;
  await countCodeFailure(dependencies.store, codeHash);
  throw refuseGrant();
}
