/** What each user has allowed each application, once and for all until it is taken back. */
import { type Step, type Store, statement } from '../database/store.ts';
import { auditStep } from './audit-store.ts';
import { spendCodesOfConsentStep } from './code-store.ts';
import { readScopes, type Scope } from './scope.ts';
import { revokeFamiliesOfConsentStep } from './token-store.ts';

interface ConsentRow {
  readonly scope: string;
}

const consentOf = statement<ConsentRow>(
  'consent-of',
  'SELECT scope FROM consents WHERE user_id = $1 AND client_id = $2',
);
// Bounded: it is a word on a page, and need not be exact where it is large.
const countConsentsOf = statement<{ people: number }>(
  'count-consents-of-client',
  'SELECT COUNT(*) AS people FROM (SELECT user_id FROM consents WHERE client_id = $1 LIMIT $2) AS few',
);
const saveConsent = statement(
  'save-consent',
  `INSERT INTO consents (user_id, client_id, scope, created_at_ms, updated_at_ms) VALUES ($1, $2, $3, $4, $4)
   ON CONFLICT (user_id, client_id) DO UPDATE SET scope = excluded.scope, updated_at_ms = excluded.updated_at_ms`,
);
const deleteConsent = statement('delete-consent', 'DELETE FROM consents WHERE user_id = $1 AND client_id = $2');
const consentsOf = statement<{
  client_id: string;
  name: string;
  homepage: string;
  scope: string;
  created_at_ms: number;
  updated_at_ms: number;
  live_tokens: number;
  last_used_at_ms: number | null;
}>(
  'consents-of-user',
  `SELECT c.client_id, a.name, a.homepage, c.scope, c.created_at_ms, c.updated_at_ms,
     (SELECT COUNT(*) FROM token_families f JOIN access_tokens t ON t.family_id = f.family_id
      WHERE f.user_id = c.user_id AND f.client_id = c.client_id AND f.revoked_at_ms IS NULL
        AND t.revoked_at_ms IS NULL AND t.expires_at_ms > $2) AS live_tokens,
     (SELECT MAX(t.issued_at_ms) FROM token_families f JOIN access_tokens t ON t.family_id = f.family_id
      WHERE f.user_id = c.user_id AND f.client_id = c.client_id) AS last_used_at_ms
   FROM consents c JOIN applications a ON a.client_id = c.client_id
   WHERE c.user_id = $1 ORDER BY c.updated_at_ms DESC, c.client_id`,
);

/** An application that a user let in. */
export interface AuthorizedApplication {
  readonly clientId: string;
  readonly name: string;
  readonly homepage: string;
  readonly scopes: readonly Scope[];
  readonly firstAllowedAtMs: number;
  readonly lastAllowedAtMs: number;
  /** When it last got a token. */
  readonly lastUsedAtMs: number | undefined;
  readonly liveTokens: number;
}

/** Nothing when the user never allowed this application anything. */
export async function findConsentedScopes(store: Store, userId: string, clientId: string): Promise<readonly Scope[]> {
  const [row] = await store.read(consentOf, [userId, clientId]);
  return row === undefined ? [] : readScopes(row.scope);
}

/** How many people let this application in, `limit` at most. */
export async function countPeople(store: Store, clientId: string, limit: number): Promise<number> {
  const [row] = await store.read(countConsentsOf, [clientId, limit]);
  return row?.people ?? 0;
}

export function saveConsentStep(userId: string, clientId: string, granted: { scope: string; nowMs: number }): Step {
  return { statement: saveConsent, parameters: [userId, clientId, granted.scope, granted.nowMs] };
}

export async function listAuthorizedApplications(
  store: Store,
  userId: string,
  nowMs: number,
): Promise<AuthorizedApplication[]> {
  const rows = await store.read(consentsOf, [userId, nowMs]);
  return rows.map((row) => ({
    clientId: row.client_id,
    name: row.name,
    homepage: row.homepage,
    scopes: readScopes(row.scope),
    firstAllowedAtMs: row.created_at_ms,
    lastAllowedAtMs: row.updated_at_ms,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
    liveTokens: row.live_tokens,
  }));
}

/** Takes back what a user allowed an application: its tokens and its codes on their way die at once. */
export async function revokeConsent(
  store: Store,
  {
    userId,
    clientId,
    nowMs,
    address,
  }: { userId: string; clientId: string; nowMs: number; address?: string | undefined },
): Promise<void> {
  await store.writeAll([
    { statement: deleteConsent, parameters: [userId, clientId] },
    revokeFamiliesOfConsentStep(userId, clientId, nowMs),
    spendCodesOfConsentStep(userId, clientId, nowMs),
    auditStep({ kind: 'consent_revoked', userId, clientId, address }, nowMs),
  ]);
}
