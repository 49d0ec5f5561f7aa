/** Answers token revocation (RFC 7009); the answer is the same for a revoked or unknown token and for one of another client. */
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import { hashSecret, isSecretOf } from '../accounts/secret-text.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { revokeToken } from '../tokens/token-store.ts';
import { authenticateClient, readClient } from './protocol/client-authentication.ts';
import { createOAuthFailure, refuseClient } from './protocol/oauth-error.ts';
import { readParameters, requireParameter } from './protocol/parameters.ts';
import { UNCACHED } from './token.ts';

export async function answerRevocation(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const parameters = await readParameters(call);
  const address = call.clientAddress;
  const presented = readClient(call.header('authorization'), parameters);
  const { clientId } = presented;
  if (clientId === undefined) throw refuseClient();
  const { application, isAuthenticated } = await authenticateClient(dependencies, { ...presented, clientId }, address);
  if (!application.isPublic && !isAuthenticated) throw refuseClient();
  const token = requireParameter(parameters.values, 'token');
  // The token's prefix gives its kind, so that `token_type_hint` is not needed, and a wrong one does no harm (§2.1).
  const kind = readKind(token);
  if (kind !== undefined) {
    const nowMs = dependencies.world.nowMs();
    const revocation = { tokenHash: hashSecret(token), kind, clientId, nowMs, address };
    const isRevoked = await dependencies.store.call(revokeToken, revocation);
    if (isRevoked) dependencies.countToken('revoked', kind === 'refresh' ? 'refresh_token' : 'access');
  }
  // RFC 7009 §2.2 lets clients ignore the body; those that parse every answer fail on an empty one.
  return replyJson({}, UNCACHED);
}

function readKind(token: string): 'access' | 'refresh' | undefined {
  if (isSecretOf('access', token)) return 'access';
  if (isSecretOf('refresh', token)) return 'refresh';
  if (isSecretOf('personal', token))
    throw createOAuthFailure('unsupported_token_type', 'An application cannot revoke a personal token; its user can');
  return undefined;
}
