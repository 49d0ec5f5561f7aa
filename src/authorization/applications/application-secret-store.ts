/** Stores the secrets of applications as SHA-256, two at a time at most (rotation). */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  procedure,
  type Store,
  statement,
} from '../../database/store.ts';

/** One of the two secrets, as the owner may see it. */
export interface ApplicationSecret {
  readonly slot: number;
  /** The last four characters. */
  readonly hint: string;
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | undefined;
}

const secretsOfSql = statement<{ slot: number; hint: string; created_at_ms: number; last_used_at_ms: number | null }>(
  'application-secrets',
  'SELECT slot, hint, created_at_ms, last_used_at_ms FROM application_secrets WHERE client_id = $1 ORDER BY created_at_ms, slot',
);
// Locks the row: a deletion in progress commits first, so that it cannot leave this secret in the table.
const lockApplicationSql = statement<{ client_id: string }>(
  'lock-application',
  'UPDATE applications SET name = name WHERE client_id = $1 RETURNING client_id',
);
// If two secrets are added concurrently, the primary key fails the one whose slot is taken.
const insertSecretSql = statement<{ slot: number }>(
  'insert-application-secret',
  `INSERT INTO application_secrets (client_id, slot, secret_hash, hint, created_at_ms)
   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (client_id, slot) DO NOTHING RETURNING slot`,
);
const deleteSecretSql = statement(
  'delete-application-secret',
  'DELETE FROM application_secrets WHERE client_id = $1 AND slot = $2',
);
const markSecretUsedSql = statement(
  'mark-secret-used',
  'UPDATE application_secrets SET last_used_at_ms = $3 WHERE client_id = $1 AND slot = $2',
);

export async function listSecrets(store: Store, clientId: string): Promise<ApplicationSecret[]> {
  const rows = await store.read(secretsOfSql, [clientId]);
  return rows.map((row) => ({
    slot: row.slot,
    hint: row.hint,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms ?? undefined,
  }));
}

export interface SecretInsert {
  readonly clientId: string;
  readonly secretHash: Uint8Array;
  readonly hint: string;
  readonly nowMs: number;
  readonly audit: BoundStatement;
}

/** Returns the slot, `full` if there are two secrets already, or `deleted` if there is no such application. */
export const insertSecretOnce: Procedure<SecretInsert, number | 'full' | 'deleted'> = conditionalProcedure(
  import.meta.url,
  'insertSecretOnce',
  async (transaction, input) => {
    if ((await transaction.run(lockApplicationSql, [input.clientId])).length === 0) return 'deleted';
    for (const slot of [1, 2]) {
      const added = await transaction.run(insertSecretSql, [
        input.clientId,
        slot,
        input.secretHash,
        input.hint,
        input.nowMs,
      ]);
      if (added.length === 0) continue;
      await transaction.run(input.audit.statement, input.audit.parameters);
      return slot;
    }
    return 'full';
  },
);

export interface SecretRemoval {
  readonly clientId: string;
  readonly slot: number;
  /** Identifies the secret in the slot; undefined for any. */
  readonly createdAtMs: number | undefined;
  readonly audit: BoundStatement;
}

/** The last secret stays: of two concurrent calls that would remove both, the later one is refused. */
export const removeSecretOnce: Procedure<SecretRemoval, 'removed' | 'absent' | 'other' | 'last'> = procedure(
  import.meta.url,
  'removeSecretOnce',
  async (transaction, { clientId, slot, createdAtMs, audit }) => {
    const secrets = await transaction.run(secretsOfSql, [clientId]);
    const secret = secrets.find((one) => one.slot === slot);
    if (secret === undefined) return 'absent';
    if (createdAtMs !== undefined && secret.created_at_ms !== createdAtMs) return 'other';
    if (secrets.length === 1) return 'last';
    await transaction.run(deleteSecretSql, [clientId, slot]);
    await transaction.run(audit.statement, audit.parameters);
    return 'removed';
  },
);

export function markSecretUsedStatement(clientId: string, slot: number, nowMs: number): BoundStatement {
  return { statement: markSecretUsedSql, parameters: [clientId, slot, nowMs] };
}
