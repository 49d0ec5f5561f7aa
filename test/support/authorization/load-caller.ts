/** Creates a signed-in person for a load test of two releases. */
import type { User } from '../../../src/authorization/accounts/user-store.ts';
import { statement } from '../../../src/database/store.ts';
import { type AuthorizationEndpoint, type SignedIn, signIn } from './authorization-server.ts';

const takeLoginSql = statement(
  'load-take-login',
  `INSERT INTO logins (login_key, kind, owner_id) VALUES ('caller', 'user', $1)`,
);
const insertCallerSql = statement(
  'load-insert-caller',
  `INSERT INTO users (id, login, login_key, name, is_admin, created_at_ms) VALUES ($1, 'caller', 'caller', 'Caller', 0, $2)`,
);

/** Uses only columns that both releases have: the tables were created by the release before, and not migrated yet. */
export async function createCaller(at: AuthorizationEndpoint): Promise<SignedIn> {
  const user: User = {
    id: 'c'.repeat(24),
    login: 'caller',
    name: 'Caller',
    email: null,
    isEmailVerified: false,
    isAdmin: false,
    createdAtMs: at.world.nowMs(),
    disabledAtMs: null,
    passwordChangedAtMs: null,
    credentialGeneration: 0,
    language: null,
    hasDelegatedAccess: true,
    administratorSinceMs: null,
  };
  await at.store.writeAll([
    { statement: takeLoginSql, parameters: [user.id] },
    { statement: insertCallerSql, parameters: [user.id, user.createdAtMs] },
  ]);
  return { user, cookie: await signIn(at, user) };
}
