/**
 * Stores secrets that are redeemed once (set-up link, second step, passkey challenge), with their lifetimes. A token is found
 * under its own kind only. The table has the token's hash, and its content encrypted with that hash as associated data, so a
 * copy of the table reveals nothing and signs in no one. These tokens were once called tickets; the table, the hash prefix, the
 * associated data and the passkey form field keep that name.
 */
import { createHash } from 'node:crypto';
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import type { SecretCipher } from '../../encryption/secret-cipher.ts';
import type { World } from '../../world.ts';

export type OneTimeTokenKind =
  | 'setup'
  | 'second-step'
  | 'passkey-sign-in'
  | 'passkey-registration'
  | 'upstream'
  | 'shown-once'
  | 'refused-page'
  | 'to-client'
  | 'password-link';

export interface OneTimeTokenDependencies {
  readonly store: Store;
  readonly world: World;
  readonly cipher: SecretCipher;
}

const insertOneTimeTokenSql = statement(
  'insert-one-time-token',
  'INSERT INTO tickets (token_hash, kind, content, expires_at_ms) VALUES ($1, $2, $3, $4)',
);
const replaceOneTimeTokenSql = statement(
  'replace-one-time-token',
  `INSERT INTO tickets (token_hash, kind, content, expires_at_ms) VALUES ($1, $2, $3, $4)
   ON CONFLICT (token_hash, kind) DO UPDATE SET content = excluded.content, expires_at_ms = excluded.expires_at_ms`,
);
const readOneTimeTokenSql = statement<{ content: Uint8Array }>(
  'read-one-time-token',
  'SELECT content FROM tickets WHERE token_hash = $1 AND kind = $2 AND expires_at_ms > $3',
);
// The DELETE decides: of two concurrent callers, one gets the row.
const redeemOneTimeTokenSql = statement<{ content: Uint8Array }>(
  'redeem-one-time-token',
  'DELETE FROM tickets WHERE token_hash = $1 AND kind = $2 AND expires_at_ms > $3 RETURNING content',
);
const redeemReadOneTimeTokenSql = statement<{ token_hash: string }>(
  'redeem-read-one-time-token',
  'DELETE FROM tickets WHERE token_hash = $1 AND kind = $2 AND content = $3 RETURNING token_hash',
);

function hashOneTimeToken(token: string): string {
  return createHash('sha256').update(`trivet ticket ${token}`).digest('base64url');
}

export function oneTimeTokenAssociatedData(kind: OneTimeTokenKind, tokenHash: string): string {
  return `ticket:${kind}:${tokenHash}`;
}

const dropOneTimeTokenSql = statement('drop-one-time-token', 'DELETE FROM tickets WHERE token_hash = $1');

export interface NewOneTimeToken {
  /** Any JSON value. */
  readonly content: unknown;
  readonly lifetimeMs: number;
}

/** Returns a token that becomes valid when the statement commits. The token itself is not stored. */
export function createOneTimeToken(
  dependencies: Omit<OneTimeTokenDependencies, 'store'>,
  kind: OneTimeTokenKind,
  created: NewOneTimeToken,
): { readonly token: string; readonly statement: BoundStatement } {
  const token = Buffer.from(dependencies.world.randomBytes(32)).toString('base64url');
  const parameters = encryptOneTimeToken(dependencies, kind, { ...created, token });
  return { token, statement: { statement: insertOneTimeTokenSql, parameters } };
}

function encryptOneTimeToken(
  { world, cipher }: Omit<OneTimeTokenDependencies, 'store'>,
  kind: OneTimeTokenKind,
  { token, content, lifetimeMs }: NewOneTimeToken & { readonly token: string },
) {
  const tokenHash = hashOneTimeToken(token);
  const ciphertext = cipher.encrypt(JSON.stringify(content), oneTimeTokenAssociatedData(kind, tokenHash));
  return [tokenHash, kind, ciphertext, world.nowMs() + lifetimeMs];
}

/** Makes the token invalid. */
export function dropOneTimeTokenStatement(token: string): BoundStatement {
  return { statement: dropOneTimeTokenSql, parameters: [hashOneTimeToken(token)] };
}

/** Issues a token for `content` (any JSON value) and returns it. The token itself is not stored. */
export async function issueOneTimeToken(
  dependencies: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  created: NewOneTimeToken,
): Promise<string> {
  const { token, statement: insert } = createOneTimeToken(dependencies, kind, created);
  await dependencies.store.write(insert.statement, insert.parameters);
  return token;
}

/** Stores the content under a token that the caller chooses, and replaces the content that the token had. */
export async function replaceOneTimeToken(
  dependencies: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  replaced: NewOneTimeToken & { readonly token: string },
): Promise<void> {
  await dependencies.store.write(replaceOneTimeTokenSql, encryptOneTimeToken(dependencies, kind, replaced));
}

/** Reads the content without redeeming the token. */
export async function findOneTimeToken<T>(
  dependencies: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  token: string,
): Promise<T | undefined> {
  const rows = await dependencies.store.read(readOneTimeTokenSql, [
    hashOneTimeToken(token),
    kind,
    dependencies.world.nowMs(),
  ]);
  return openOneTimeToken<T>(dependencies, kind, token, rows);
}

/** Redeems the token. A second caller finds nothing. */
export async function redeemOneTimeToken<T>(
  dependencies: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  token: string,
): Promise<T | undefined> {
  const rows = await dependencies.store.write(redeemOneTimeTokenSql, [
    hashOneTimeToken(token),
    kind,
    dependencies.world.nowMs(),
  ]);
  return openOneTimeToken<T>(dependencies, kind, token, rows);
}

/** Redeems the token if `isAsked` accepts its content. Content that replaced it meanwhile is not redeemed. */
export async function redeemAskedOneTimeToken<T>(
  dependencies: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  { token, isAsked }: { readonly token: string; readonly isAsked: (content: T) => boolean },
): Promise<T | undefined> {
  const { store, world } = dependencies;
  const tokenHash = hashOneTimeToken(token);
  const rows = await store.read(readOneTimeTokenSql, [tokenHash, kind, world.nowMs()]);
  const content = openOneTimeToken<T>(dependencies, kind, token, rows);
  if (content === undefined || !isAsked(content)) return undefined;
  // Each encryption gives a different ciphertext, so the ciphertext identifies the content.
  const redeemed = await store.write(redeemReadOneTimeTokenSql, [tokenHash, kind, rows[0]!.content]);
  return redeemed.length === 0 ? undefined : content;
}

function openOneTimeToken<T>(
  { cipher }: OneTimeTokenDependencies,
  kind: OneTimeTokenKind,
  token: string,
  rows: readonly { readonly content: Uint8Array }[],
): T | undefined {
  const [row] = rows;
  if (row === undefined) return undefined;
  return JSON.parse(
    cipher.decrypt(row.content, oneTimeTokenAssociatedData(kind, hashOneTimeToken(token))).toString('utf8'),
  ) as T;
}
