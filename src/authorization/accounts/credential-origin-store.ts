/**
 * What a credential hangs on, as SQL. It is checked at every use and in no other place, so nothing has to find and end
 * the credentials when one of these changes, and a change that commits meanwhile cannot be missed:
 *  - the person is not disabled, and the person's epoch is still the one under which the credential was made. A new
 *    password and a reset of the second step raise the epoch;
 *  - the person's grant to the application is still the same. Taking a consent back removes the grant; allowing less
 *    than before makes another one.
 */

/** Brings in the person `u` and the grant `c` of the row `origin`, which has user_id and client_id. */
export function joinOrigin(origin: string, kind: '' | 'LEFT' = ''): string {
  return `${kind} JOIN users u ON u.id = ${origin}.user_id
   ${kind} JOIN consents c ON c.user_id = ${origin}.user_id AND c.client_id = ${origin}.client_id`;
}

/** Behind `joinOrigin`: whether all that the row hangs on still holds. */
export function holdsOrigin(origin: string): string {
  return `u.disabled_at_ms IS NULL AND u.epoch = ${origin}.user_epoch AND c.grant_id = ${origin}.grant_id`;
}

/** The same for a statement that cannot join. */
export function existsOrigin(table: string): string {
  return `EXISTS (SELECT 1 FROM users u JOIN consents c ON c.user_id = u.id
     WHERE u.id = ${table}.user_id AND c.client_id = ${table}.client_id AND ${holdsOrigin(table)})`;
}
