/** Decides which client may use a grant; a confidential one must have authenticated (RFC 6749 §3.2.1). */
import type { Failure } from '../../../errors.ts';
import type { Client, GrantType } from '../../applications/application-store.ts';
import { createOAuthFailure, refuseClient } from '../protocol/oauth-error.ts';
import type { Exchange } from './grant.ts';

export function requireClient({ client }: Exchange, grantType: GrantType): Client {
  if (client === undefined) throw createOAuthFailure('invalid_request', 'The parameter client_id is missing');
  if (!client.application.isPublic && !client.isAuthenticated) throw refuseClient();
  checkGrantAllowed(client.application, grantType);
  return client.application;
}

export function checkGrantAllowed(application: Client, grantType: GrantType): void {
  if (!application.grantTypes.includes(grantType)) throw refuseGrantType(grantType);
}

export function refuseGrantType(grantType: GrantType): Failure {
  const description = `This client may not use the grant ${grantType}: its owner can allow it where it is registered`;
  return createOAuthFailure('unauthorized_client', description);
}
