/**
 * Answers `/oauth/userinfo` with the claims that the scopes allow (OpenID Connect Core §5.3 and §5.4). `openid` alone names the
 * subject; `profile` adds the names, `email` the verified address, `all_user` both.
 */
import { type Call, type Reply, replyJson } from '../../http/endpoint.ts';
import { permits } from '../../scopes.ts';
import { findUserById } from '../accounts/user-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { identify, refuseToken } from '../tokens/require-scope.ts';
import { createVerifyToken } from '../tokens/verify-token.ts';
import { createOAuthFailure } from './protocol/oauth-error.ts';
import { UNCACHED } from './token.ts';

export async function answerUserinfo(dependencies: ProtocolDependencies, call: Call): Promise<Reply> {
  const identity = await identify(call, createVerifyToken(dependencies));
  if (!identity.scopes.includes('openid'))
    throw createOAuthFailure('insufficient_scope', 'The token needs the scope openid', {
      'WWW-Authenticate': 'Bearer realm="trivet", error="insufficient_scope", scope="openid"',
    });
  const user = await findUserById(dependencies.store, identity.userId);
  if (user === undefined) throw refuseToken();
  const { name, login, email, isEmailVerified } = user;
  // Relying parties match people by email: only a verified address is returned.
  const address = isEmailVerified ? { email, email_verified: true } : { email_verified: false };
  const claims = {
    sub: user.id,
    ...(permits(identity, 'profile') ? { name, preferred_username: login } : {}),
    ...(permits(identity, 'email') ? address : {}),
  };
  return replyJson(claims, UNCACHED);
}
