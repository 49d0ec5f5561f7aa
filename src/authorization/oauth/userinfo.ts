/**
 * Answers `/oauth/userinfo` with the claims that the scopes allow (OpenID Connect Core §5.3). `openid` alone names the subject;
 * `all_user` adds the profile.
 */
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import { findUserById } from '../accounts/user-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { identify, refuseToken } from '../tokens/require-scope.ts';
import { createVerifyToken } from '../tokens/verify-token.ts';
import { createOAuthFailure } from './protocol/oauth-error.ts';
import { UNCACHED } from './token.ts';

export async function answerUserinfo(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const { scopes, userId } = await identify(call, createVerifyToken(dependencies));
  if (!scopes.includes('openid'))
    throw createOAuthFailure('insufficient_scope', 'The token needs the scope openid', {
      'WWW-Authenticate': 'Bearer realm="trivet", error="insufficient_scope", scope="openid"',
    });
  const user = await findUserById(dependencies.store, userId);
  if (user === undefined) throw refuseToken();
  const { name, login, email, isEmailVerified } = user;
  // Relying parties match people by email: only a verified address is returned.
  const verified = isEmailVerified ? { email, email_verified: true } : {};
  const profile = { name, preferred_username: login, ...verified };
  return replyJson({ sub: user.id, ...(scopes.includes('all_user') ? profile : {}) }, UNCACHED);
}
