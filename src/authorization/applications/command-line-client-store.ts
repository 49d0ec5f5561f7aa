/** Creates the application of the command line, which `trivet login` uses. */
import { type Store, statement } from '../../database/store.ts';

// Consents and tokens refer to an application, so the command line needs a row. It is inserted at the start, not by a migration,
// so that processes of an earlier release can run beside this one.
const registerClientSql = statement(
  'register-command-line-client',
  `INSERT INTO applications (client_id, name, owner_id, homepage, description, is_public, redirect_uris, grant_types,
     authenticated_refresh, may_introspect, created_at_ms)
   VALUES ('trivet-cli', 'Trivet command line', NULL, '', 'The command line of this service, on another machine', 1, '[]',
     'device_code refresh_token', 0, 0, $1) ON CONFLICT (client_id) DO NOTHING`,
);

/** Registers the public client of `trivet login`, which uses the device flow (RFC 8628). Idempotent. */
export async function ensureCommandLineClient(store: Store, nowMs: number): Promise<void> {
  await store.write(registerClientSql, [nowMs]);
}
