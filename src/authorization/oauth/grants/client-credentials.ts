/**
 * Grants tokens to an application that acts for itself, machine to machine (RFC 6749 §4.4). Such an application owns no
 * resources here.
 */
import { findUserById } from '../../accounts/user-store.ts';
import { DEFAULT_SCOPE, formatScope, needsPerson, readRequestedScopes, type Scope } from '../../applications/scope.ts';
import { createTokenPair, formatTokenAnswer, toNewAccess } from '../../tokens/issue-tokens.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import { deleteSurplusOwnTokensStatements, drawsDeletion } from '../../tokens/surplus-tokens-store.ts';
import { insertFamilyStatements } from '../../tokens/token-store.ts';
import { createOAuthFailure, refuseClient } from '../protocol/oauth-error.ts';
import type { Exchange, Grant } from './grant.ts';
import { requireClient } from './require-client.ts';

export const grantToClient: Grant = async (dependencies, exchange) => {
  const { clientId, isPublic, ownerId } = requireClient(exchange, 'client_credentials');
  if (isPublic) throw refuseClient();
  await checkOwner(dependencies, ownerId);
  const { nowMs, address } = exchange;
  const scope = formatScope(readScope(exchange));
  const { accessToken } = createTokenPair(dependencies.world);
  const access = toNewAccess(dependencies, accessToken, nowMs);
  const family = {
    familyId: dependencies.world.uuid(),
    clientId,
    person: undefined,
    scope,
    authTimeMs: nowMs,
    nowMs,
    expiresAtMs: access.expiresAtMs,
  };
  using issue = dependencies.issueLog.prepare({ clientId, address, scope, nowMs });
  await dependencies.store.writeAll([
    ...insertFamilyStatements(family, { access }),
    ...issue.statements,
    ...(drawsDeletion(dependencies.world) ? deleteSurplusOwnTokensStatements(family) : []),
  ]);
  issue.count();
  return formatTokenAnswer({ accessToken, scope, issuedAtMs: nowMs, expiresAtMs: access.expiresAtMs });
};

/** Throws if the owner is disabled, who could otherwise act through the application. token-store.ts refuses earlier tokens. */
async function checkOwner({ store }: ProtocolDependencies, ownerId: string | undefined): Promise<void> {
  const owner = ownerId === undefined ? undefined : await findUserById(store, ownerId);
  if (owner !== undefined && owner.disabledAtMs !== null)
    throw createOAuthFailure('unauthorized_client', 'The person who registered this client is disabled');
}

/** Reads the scope. The token has no user, so scopes that need a person are left out, as unknown names are. */
function readScope({ values }: Exchange): readonly Scope[] {
  const text = values.get('scope');
  if (text === undefined) return DEFAULT_SCOPE;
  const scopes = readRequestedScopes(text).filter((scope) => !needsPerson(scope));
  if (scopes.length === 0)
    throw createOAuthFailure(
      'invalid_scope',
      'None of the requested scopes may be granted to a client without a person',
    );
  return scopes;
}
