/**
 * Decides for whom a bearer token acts, and refuses revoked and expired tokens. Every check reads the token's row and the rows
 * that it depends on. They come from the read cache only if nothing was committed since they were read (`store.readCached`), so
 * a revocation counts from the next call on.
 */
import type { Identity, VerifyToken } from '../../identity.ts';
import { isAdministratorScope } from '../../scopes.ts';
import { hashSecret, isSecretOf } from '../accounts/secret-text.ts';
import { findLivePersonalToken, type LivePersonalToken, markPersonalTokenUsed } from './personal-token-store.ts';
import type { ProtocolDependencies } from './protocol-dependencies.ts';
import { countRefusals } from './token-metrics.ts';
import { findLiveToken, type LiveToken } from './token-store.ts';

/** The precision of "last used" on pages. */
const USE_STEP_MS = 60_000;

export function createVerifyToken(
  dependencies: Pick<ProtocolDependencies, 'store' | 'world' | 'log' | 'countToken'>,
): VerifyToken {
  return countRefusals(dependencies.countToken, async (token) => {
    const nowMs = dependencies.world.nowMs();
    if (isSecretOf('access', token)) {
      const access = await findLiveToken(dependencies.store, 'access', { hash: hashSecret(token), nowMs });
      return access && toIdentity(access);
    }
    if (!isSecretOf('personal', token)) return undefined;
    const personal = await findLivePersonalToken(dependencies.store, hashSecret(token), nowMs);
    if (personal === undefined) return undefined;
    recordTokenUse(dependencies, personal, nowMs);
    const { userId, tokenId, scopes, repositories } = personal;
    return { userId, ...pickPerson(personal, scopes), repositories, tokenKind: 'personal', tokenId };
  });
}

/** An application that acts for itself has its client id, which is never the id or the login of a person, as user id. */
function toIdentity({ clientId, scope, user }: LiveToken): Identity {
  const person = user ?? { id: clientId, login: clientId, isAdmin: false };
  const scopes = scope.split(' ');
  return { userId: person.id, ...pickPerson(person, scopes), tokenKind: 'access', clientId };
}

/** The role alone gives a token no rights: it must also have the administrator scope. */
function pickPerson({ login, isAdmin }: { login: string; isAdmin: boolean }, scopes: readonly string[]) {
  const counting = listEffectiveScopes(scopes, isAdmin);
  return { login, scopes: counting, isAdmin: counting.includes('admin') };
}

/** The scopes of a token that count now: administrator scopes count only while its person is an administrator. */
export function listEffectiveScopes(scopes: readonly string[], isAdmin: boolean): readonly string[] {
  return isAdmin ? scopes : scopes.filter((scope) => !isAdministratorScope(scope));
}

/** Records the use of a token, at most once a minute. The caller does not wait for the write. */
export function recordTokenUse(
  dependencies: Pick<ProtocolDependencies, 'store' | 'log'>,
  token: LivePersonalToken,
  nowMs: number,
): void {
  if (Math.abs(nowMs - (token.lastUsedAtMs ?? 0)) < USE_STEP_MS) return;
  const { tokenId } = token;
  markPersonalTokenUsed(dependencies.store, tokenId, { nowMs, beforeMs: nowMs - USE_STEP_MS }).catch((err: unknown) =>
    dependencies.log.warn({ err, tokenId }, 'Cannot record the use of a personal token'),
  );
}
