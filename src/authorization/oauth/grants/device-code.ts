/** Answers the polls of a device until its user has decided: pending, slow down, denied, tokens (RFC 8628 §3.4). */

import { hashSecret, isSecretOf } from '../../accounts/secret-text.ts';
import {
  computeFamilyEnd,
  createTokenPair,
  formatTokenAnswer,
  toNewAccess,
  toNewRefresh,
} from '../../tokens/issue-tokens.ts';
import { drawsDeletion } from '../../tokens/surplus-tokens-store.ts';
import { findDeviceScope, pollDevice, SLOW_DOWN_SECONDS } from '../protocol/device-store.ts';
import { createIdToken, findIdTokenKey } from '../protocol/id-token.ts';
import { createOAuthFailure, refuseGrant } from '../protocol/oauth-error.ts';
import { requireParameter } from '../protocol/parameters.ts';
import type { Grant } from './grant.ts';
import { requireClient } from './require-client.ts';

const DESCRIPTION_OF = {
  authorization_pending: 'The user has not decided yet',
  slow_down: `The device polls too often: add ${SLOW_DOWN_SECONDS} seconds to the polling interval`,
  expired_token: 'The device code has expired, begin again',
  access_denied: 'The user refused',
} as const;

export const exchangeDeviceCode: Grant = async (dependencies, exchange) => {
  const { clientId, grantTypes } = requireClient(exchange, 'device_code');
  const text = requireParameter(exchange.values, 'device_code');
  if (!isSecretOf('device', text)) throw refuseGrant();
  const deviceHash = hashSecret(text);
  const idTokenKey = await findIdTokenKey(dependencies, await findDeviceScope(dependencies.store, deviceHash));
  const { nowMs, address } = exchange;
  const pair = createTokenPair(dependencies.world);
  const access = toNewAccess(dependencies, pair.accessToken, nowMs);
  const canRefresh = grantTypes.includes('refresh_token');
  const outcome = await dependencies.store.call(pollDevice, {
    deviceHash,
    clientId,
    nowMs,
    familyId: dependencies.world.uuid(),
    familyExpiresAtMs: computeFamilyEnd(dependencies, nowMs),
    tokens: { access, refresh: canRefresh ? toNewRefresh(dependencies, pair.refreshToken, nowMs) : undefined },
    deletesSurplus: drawsDeletion(dependencies.world),
    address,
  });
  if (outcome.kind === 'invalid_grant') throw refuseGrant();
  if (outcome.kind !== 'redeemed') throw createOAuthFailure(outcome.kind, DESCRIPTION_OF[outcome.kind]);
  const { userId, scope, authTimeMs } = outcome;
  const facts = { userId, clientId, nonce: undefined, authTimeMs, accessToken: pair.accessToken, nowMs };
  return formatTokenAnswer({
    accessToken: pair.accessToken,
    refreshToken: canRefresh ? pair.refreshToken : undefined,
    scope,
    issuedAtMs: nowMs,
    expiresAtMs: access.expiresAtMs,
    idToken: await createIdToken(dependencies, idTokenKey, facts),
  });
};
