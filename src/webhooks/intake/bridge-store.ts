/** Stores the encrypted secrets of bridges, one for each repository and code host. */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  type SqlValue,
  type Store,
  statement,
} from '../../database/store.ts';

const secretOfSql = statement<{ secret: Uint8Array }>(
  'bridge-secret',
  'SELECT secret FROM bridge_secrets WHERE repository_id = $1 AND host = $2',
);
const hostsOfSql = statement<{ host: string; created_at_ms: number }>(
  'bridge-hosts',
  'SELECT host, created_at_ms FROM bridge_secrets WHERE repository_id = $1 ORDER BY host',
);
const putSecretSql = statement(
  'put-bridge-secret',
  `INSERT INTO bridge_secrets (repository_id, host, secret, created_at_ms) VALUES ($1, $2, $3, $4)
   ON CONFLICT (repository_id, host) DO UPDATE SET secret = excluded.secret, created_at_ms = excluded.created_at_ms`,
);
const deleteSecretSql = statement<{ host: string }>(
  'delete-bridge-secret',
  'DELETE FROM bridge_secrets WHERE repository_id = $1 AND host = $2 RETURNING host',
);

/** The associated data of a bridge's encrypted secret. */
export function bridgeAssociatedData(repositoryId: number, host: string): string {
  return `bridge:${repositoryId}:${host}`;
}

export const deleteSecretOnce: Procedure<
  { readonly parameters: readonly SqlValue[]; readonly statements: readonly BoundStatement[] },
  boolean
> = conditionalProcedure(import.meta.url, 'deleteSecretOnce', async (transaction, { parameters, statements }) => {
  if ((await transaction.run(deleteSecretSql, parameters)).length === 0) return false;
  await transaction.runAll(statements);
  return true;
});

export interface BridgeSecret {
  readonly repositoryId: number;
  readonly host: string;
  readonly ciphertext: Uint8Array;
  readonly nowMs: number;
}

export async function findBridgeCiphertext(
  store: Store,
  repositoryId: number,
  host: string,
): Promise<Uint8Array | undefined> {
  return (await store.read(secretOfSql, [repositoryId, host]))[0]?.secret;
}

export async function listBridges(
  store: Store,
  repositoryId: number,
): Promise<{ readonly host: string; readonly createdAtMs: number }[]> {
  const rows = await store.read(hostsOfSql, [repositoryId]);
  return rows.map((row) => ({ host: row.host, createdAtMs: row.created_at_ms }));
}

/** Stores the secret and commits `statements` in the same transaction. */
export async function putBridgeSecret(
  store: Store,
  { repositoryId, host, ciphertext, nowMs }: BridgeSecret,
  statements: readonly BoundStatement[],
): Promise<void> {
  await store.writeAll([
    { statement: putSecretSql, parameters: [repositoryId, host, ciphertext, nowMs] },
    ...statements,
  ]);
}

/** Deletes the secret, and commits `statements` in the same transaction. False if no secret is stored for the host. */
export async function removeBridgeSecret(
  store: Store,
  { repositoryId, host }: Pick<BridgeSecret, 'repositoryId' | 'host'>,
  statements: readonly BoundStatement[],
): Promise<boolean> {
  return await store.call(deleteSecretOnce, { parameters: [repositoryId, host], statements });
}
