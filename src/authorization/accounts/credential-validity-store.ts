/**
 * Decides in SQL whether a code, device code or token is still valid: person, consent, credential generation. It is checked at
 * every use, so no statement has to find and end these credentials when the answer changes, and no concurrent change is missed.
 * Sessions depend on person and credential generation, not on a consent (session-store.ts). Personal tokens survive a new
 * password. A credential is valid while
 *  - the person is not disabled, and the person's credential generation (`epoch`) is still the one under which the
 *    credential was made. A new password and a reset of the second step raise it;
 *  - the person's consent to the application is still the same (`grant_id`). Withdrawing a consent removes it; allowing
 *    less than before makes another one.
 * Names that differ between columns and code:
 *  - `users.epoch` and `user_epoch` are `credentialGeneration`: how often a person's credentials were replaced;
 *  - `generation` of a refresh token is another number: how often its family was refreshed before (rotation-store.ts);
 *  - `grant_id` is `consentId`. RFC 6749 also calls a token family a grant (token-store.ts); its column is `family_id`.
 */

/** Joins the person `u` and the consent `c` of the rows of `table`, which has user_id and client_id. */
export function joinPersonAndConsent(table: string, kind: '' | 'LEFT' = ''): string {
  return `${kind} JOIN users u ON u.id = ${table}.user_id
   ${kind} JOIN consents c ON c.user_id = ${table}.user_id AND c.client_id = ${table}.client_id`;
}

/** After `joinPersonAndConsent`: whether the credential of the row is still valid. */
export function isStillValid(table: string): string {
  return `u.disabled_at_ms IS NULL AND u.epoch = ${table}.user_epoch AND c.grant_id = ${table}.grant_id`;
}

/** The same condition as a subquery, for a statement that cannot join. */
export function existsStillValid(table: string): string {
  return `EXISTS (SELECT 1 FROM users u JOIN consents c ON c.user_id = u.id
     WHERE u.id = ${table}.user_id AND c.client_id = ${table}.client_id AND ${isStillValid(table)})`;
}
