import { type Store, statement } from '../../database/store.ts';

const secretOf = statement<{ secret: Uint8Array }>(
  'bridge-secret',
  'SELECT secret FROM bridge_secrets WHERE repository_id = $1 AND host = $2',
);
const hostsOf = statement<{ host: string; created_at_ms: number }>(
  'bridge-hosts',
  'SELECT host, created_at_ms FROM bridge_secrets WHERE repository_id = $1 ORDER BY host',
);
const putSecret = statement(
  'put-bridge-secret',
  `INSERT INTO bridge_secrets (repository_id, host, secret, created_at_ms) VALUES ($1, $2, $3, $4)
   ON CONFLICT (repository_id, host) DO UPDATE SET secret = excluded.secret, created_at_ms = excluded.created_at_ms`,
);
const deleteSecret = statement<{ host: string }>(
  'delete-bridge-secret',
  'DELETE FROM bridge_secrets WHERE repository_id = $1 AND host = $2 RETURNING host',
);

/** The associated data of a bridge's encrypted secret. */
export function bridgeAssociatedData(repositoryId: number, host: string): string {
  return `bridge:${repositoryId}:${host}`;
}

export interface BridgeStore {
  findSecret(repositoryId: number, host: string): Promise<Uint8Array | undefined>;
  list(repositoryId: number): Promise<{ readonly host: string; readonly createdAtMs: number }[]>;
  put(repositoryId: number, host: string, secret: Uint8Array, nowMs: number): Promise<void>;
  remove(repositoryId: number, host: string): Promise<boolean>;
}

export function createBridgeStore(store: Store): BridgeStore {
  return {
    findSecret: async (repositoryId, host) => (await store.read(secretOf, [repositoryId, host]))[0]?.secret,
    list: async (repositoryId) =>
      (await store.read(hostsOf, [repositoryId])).map((row) => ({ host: row.host, createdAtMs: row.created_at_ms })),
    put: async (repositoryId, host, secret, nowMs) => {
      await store.write(putSecret, [repositoryId, host, secret, nowMs]);
    },
    remove: async (repositoryId, host) => (await store.write(deleteSecret, [repositoryId, host])).length > 0,
  };
}
