/** Turns a person's decision on the consent page into a code for the client, or a refusal. */
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { createSecret, hashSecret } from '../accounts/secret-text.ts';
import { formatScope, type Scope } from '../applications/scope.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import type { Session } from '../sign-in/sign-in.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import type { AuthorizationRequest } from './authorize-request.ts';
import { type RedirectDependencies, redirectWithCode, redirectWithRefusal } from './client-redirect.ts';
import { insertAllowedCode, insertCodeStatement, type NewCode } from './protocol/code-store.ts';
import type { Consent } from './protocol/consent-store.ts';
import { createOAuthFailure } from './protocol/oauth-error.ts';

export type AnswerDependencies = ProtocolDependencies & RedirectDependencies;

export interface Decided {
  readonly request: AuthorizationRequest;
  readonly session: Session;
}

export interface Allowed extends Decided {
  /** The requested scopes that the person allowed. */
  readonly allowedScopes: readonly Scope[];
}

export async function allow(
  dependencies: AnswerDependencies,
  c: Context<HttpEnv>,
  { request, session, allowedScopes }: Allowed,
): Promise<Response> {
  const nowMs = dependencies.world.nowMs();
  const userId = session.user.id;
  const { clientId, scopes: asked } = request;
  const details = { scope: formatScope(allowedScopes) };
  const { text, code } = createCode(dependencies, { request: { ...request, scopes: allowedScopes }, session });
  await dependencies.store.call(insertAllowedCode, {
    decision: { userId, clientId, asked, allowedScopes, newConsentId: dependencies.world.uuid(), nowMs },
    code,
    audit: auditStatement({ kind: 'consent_granted', userId, clientId, address: clientAddress(c), details }, nowMs),
  });
  return redirectWithCode(dependencies, c, { request, code: text });
}

export async function deny(
  dependencies: AnswerDependencies,
  c: Context<HttpEnv>,
  { request, session }: Decided,
): Promise<Response> {
  const { clientId, redirectUri, state } = request;
  const event = { kind: 'consent_denied' as const, userId: session.user.id, clientId, address: clientAddress(c) };
  await dependencies.store.writeAll([auditStatement(event, dependencies.world.nowMs())]);
  const error = createOAuthFailure('access_denied', 'The user refused');
  return redirectWithRefusal(dependencies, c, { error, redirectUri, state });
}

export async function answerWithoutAsking(
  dependencies: AnswerDependencies,
  c: Context<HttpEnv>,
  { request, session, consent }: Decided & { readonly consent: Consent },
): Promise<Response> {
  const { text, code } = createCode(dependencies, { request, session });
  const { statement, parameters } = insertCodeStatement({ ...code, consentId: consent.consentId });
  await dependencies.store.write(statement, parameters);
  return redirectWithCode(dependencies, c, { request, code: text });
}

function createCode(
  dependencies: AnswerDependencies,
  { request, session }: Decided,
): { readonly text: string; readonly code: Omit<NewCode, 'consentId'> } {
  const text = createSecret('code', dependencies.world);
  const issuedAtMs = dependencies.world.nowMs();
  const { clientId, redirectUri, codeChallenge, nonce } = request;
  const code = {
    codeHash: hashSecret(text),
    clientId,
    userId: session.user.id,
    credentialGeneration: session.user.credentialGeneration,
    redirectUri,
    codeChallenge,
    scope: formatScope(request.scopes),
    nonce,
    authTimeMs: session.authTimeMs,
    issuedAtMs,
    expiresAtMs: issuedAtMs + dependencies.settings.codeSeconds * 1000,
  };
  return { text, code };
}
