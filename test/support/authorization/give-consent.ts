/** Stores a consent without the page, for tests of what depends on it. */

import type { Scope } from '../../../src/authorization/applications/scope.ts';
import { type ConsentDecision, saveConsentIn } from '../../../src/authorization/oauth/protocol/consent-store.ts';
import { type Procedure, procedure, type Store } from '../../../src/database/store.ts';

export const saveConsent: Procedure<ConsentDecision, string> = procedure(import.meta.url, 'saveConsent', saveConsentIn);

export interface GivenConsent {
  readonly userId: string;
  readonly clientId: string;
  readonly scopes: readonly Scope[];
}

/** Returns the id of the grant. */
export function giveConsent(store: Store, { userId, clientId, scopes }: GivenConsent): Promise<string> {
  return store.call(saveConsent, {
    userId,
    clientId,
    asked: scopes,
    allowedScopes: scopes,
    newConsentId: 'grant',
    nowMs: 1,
  });
}
