/** RFC 6749 §4.1.3 with PKCE (RFC 7636 §4.6). `redirect_uri` may be left out (the contract); when sent it must be right. */
import { auditStep } from '../../accounts/audit-store.ts';
import { hashSecret, isSecretOf } from '../../accounts/secret-text.ts';
import {
  computeFamilyEnd,
  createTokenPair,
  formatTokenAnswer,
  toNewAccess,
  toNewRefresh,
} from '../../tokens/issue-tokens.ts';
import type { ProtocolParts } from '../../tokens/parts.ts';
import { countCodeFailure, findCode, type IssuedCode, redeemCode } from '../protocol/code-store.ts';
import { createIdToken } from '../protocol/id-token.ts';
import { refuseGrant } from '../protocol/oauth-error.ts';
import { requireParameter } from '../protocol/parameters.ts';
import { isVerifierRight } from '../protocol/pkce.ts';
import type { Grant } from './grant.ts';
import { requireClient } from './require-client.ts';

export const exchangeCode: Grant = async (parts, exchange) => {
  const application = requireClient(exchange, 'authorization_code');
  const text = requireParameter(exchange.values, 'code');
  const codeHash = hashSecret(text);
  const code = isSecretOf('code', text) ? await findCode(parts.store, codeHash) : undefined;
  if (code === undefined) throw refuseGrant();
  await checkExchange(parts, { code, codeHash, clientId: application.clientId, values: exchange.values });

  const { nowMs, address } = exchange;
  const { clientId } = application;
  const pair = createTokenPair(parts.world);
  const access = toNewAccess(parts, pair.accessToken, nowMs);
  const canRefresh = application.grantTypes.includes('refresh_token');
  const outcome = await parts.store.call(redeemCode, {
    codeHash,
    clientId,
    nowMs,
    familyId: parts.world.uuid(),
    familyExpiresAtMs: computeFamilyEnd(parts, nowMs),
    tokens: { access, refresh: canRefresh ? toNewRefresh(parts, pair.refreshToken, nowMs) : undefined },
    audit: auditStep(
      { kind: 'token_issued', userId: code.userId, clientId, address, details: { scope: code.scope } },
      nowMs,
    ),
    address,
  });
  if (outcome === 'refused') throw refuseGrant();
  return formatTokenAnswer({
    accessToken: pair.accessToken,
    refreshToken: canRefresh ? pair.refreshToken : undefined,
    scope: code.scope,
    issuedAtMs: nowMs,
    expiresAtMs: access.expiresAtMs,
    idToken: await createIdToken(parts, { ...code, clientId, accessToken: pair.accessToken, nowMs }),
  });
};

interface CheckedExchange {
  readonly code: IssuedCode;
  readonly codeHash: Uint8Array;
  readonly clientId: string;
  readonly values: ReadonlyMap<string, string>;
}

/** Throws unless this exchange may redeem the code. `redeemCode` decides whether it was used before. */
async function checkExchange(
  parts: ProtocolParts,
  { code, codeHash, clientId, values }: CheckedExchange,
): Promise<void> {
  if (code.clientId !== clientId) throw refuseGrant();
  const redirectUri = values.get('redirect_uri');
  if (redirectUri !== undefined && redirectUri !== code.redirectUri) throw refuseGrant();
  if (isVerifierRight(code.codeChallenge, values.get('code_verifier'))) return;
  await countCodeFailure(parts.store, codeHash);
  throw refuseGrant();
}
