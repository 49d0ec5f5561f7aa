/** Creates the application of the command line, which `trivet login` uses. */
import { type Store, statement } from '../../database/store.ts';

// Consents and tokens refer to an application, so the command line needs a row. It is inserted at the start and not by a
// migration, so that older programs may serve beside this one.
const registerClientSql = statement(
  'register-command-line-client',
  `INSERT INTO applications (client_id, name, owner_id, homepage, description, is_public, redirect_uris, grant_types,
     authenticated_refresh, may_introspect, created_at_ms)
   VALUES ('trivet-cli', 'Trivet command line', NULL, '', 'The command line of this service, on another machine', 1, '[]',
     'device_code refresh_token', 0, 0, $1) ON CONFLICT (client_id) DO NOTHING`,
);

/** The client that `trivet login` is: public, and signed in by the device flow (RFC 8628). Idempotent. */
export async function ensureCommandLineClient(store: Store, nowMs: number): Promise<void> {
  await store.write(registerClientSql, [nowMs]);
}
