/** Stores OAuth applications, and finds the client that a request is authenticated against. */
import {
  type BoundStatement,
  type Procedure,
  procedure,
  type SqlValue,
  type Store,
  statement,
  type Transaction,
} from '../../database/store.ts';

export const GRANT_TYPES = ['authorization_code', 'refresh_token', 'client_credentials', 'device_code'] as const;
export type GrantType = (typeof GRANT_TYPES)[number];

export interface Application {
  readonly clientId: string;
  readonly name: string;
  /** Undefined for an application of the service itself (`trivet app create` without an owner). */
  readonly ownerId: string | undefined;
  readonly homepage: string;
  readonly description: string;
  /** A native or browser application: it has no secret and must use PKCE. */
  readonly isPublic: boolean;
  readonly redirectUris: readonly string[];
  readonly grantTypes: readonly GrantType[];
  /** Refuse a refresh without client authentication. */
  readonly authenticatedRefresh: boolean;
  /** A resource server: may introspect tokens of other applications. */
  readonly mayIntrospect: boolean;
  /** When a request last had its secret in the query string, where logs can keep it; written at most once a day. */
  readonly secretInQueryAtMs: number | undefined;
  readonly disabledAtMs: number | undefined;
  readonly createdAtMs: number;
}

/** The fields of an application that the protocol needs, without those that only pages show. */
export type Client = Pick<
  Application,
  | 'clientId'
  | 'ownerId'
  | 'isPublic'
  | 'grantTypes'
  | 'authenticatedRefresh'
  | 'mayIntrospect'
  | 'secretInQueryAtMs'
  | 'disabledAtMs'
>;

/** The secrets that a client is authenticated against. */
export interface ClientCredentials {
  readonly application: Client;
  readonly secrets: readonly { readonly slot: number; readonly hash: Uint8Array; readonly lastUsedAtMs: number }[];
}

interface ClientRow {
  readonly client_id: string;
  readonly owner_id: string | null;
  readonly is_public: number;
  readonly grant_types: string;
  readonly authenticated_refresh: number;
  readonly may_introspect: number;
  readonly secret_in_query_at_ms: number | null;
  readonly disabled_at_ms: number | null;
}

interface ApplicationRow extends ClientRow {
  readonly name: string;
  readonly homepage: string;
  readonly description: string;
  readonly redirect_uris: string;
  readonly created_at_ms: number;
}

interface CredentialsRow extends ClientRow {
  readonly hash1: Uint8Array | null;
  readonly used1: number | null;
  readonly hash2: Uint8Array | null;
  readonly used2: number | null;
}

const CLIENT_COLUMNS = `a.client_id, a.owner_id, a.is_public, a.grant_types, a.authenticated_refresh, a.may_introspect,
  a.secret_in_query_at_ms, a.disabled_at_ms`;
const COLUMNS = `${CLIENT_COLUMNS}, a.name, a.homepage, a.description, a.redirect_uris, a.created_at_ms`;

const credentialsByClientSql = statement<CredentialsRow>(
  'client-credentials',
  `SELECT ${CLIENT_COLUMNS}, s1.secret_hash AS hash1, s1.last_used_at_ms AS used1, s2.secret_hash AS hash2, s2.last_used_at_ms AS used2
   FROM applications a
   LEFT JOIN application_secrets s1 ON s1.client_id = a.client_id AND s1.slot = 1
   LEFT JOIN application_secrets s2 ON s2.client_id = a.client_id AND s2.slot = 2
   WHERE a.client_id = $1`,
);
const applicationByIdSql = statement<ApplicationRow>(
  'application-by-id',
  `SELECT ${COLUMNS} FROM applications a WHERE a.client_id = $1`,
);
const applicationsOfOwnerSql = statement<ApplicationRow>(
  'applications-of-owner',
  `SELECT ${COLUMNS} FROM applications a WHERE a.owner_id = $1 ORDER BY a.created_at_ms DESC, a.client_id`,
);
const applicationsAfterSql = statement<ApplicationRow>(
  'applications-after',
  `SELECT ${COLUMNS} FROM applications a WHERE a.client_id > $1 ORDER BY a.client_id LIMIT $2`,
);
const countOfOwnerSql = statement<{ total: number }>(
  'count-applications-of-owner',
  'SELECT COUNT(*) AS total FROM applications WHERE owner_id = $1',
);
const insertApplicationSql = statement(
  'insert-application',
  `INSERT INTO applications (client_id, name, owner_id, homepage, description, is_public, redirect_uris, grant_types,
     authenticated_refresh, may_introspect, created_at_ms)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
);
const updateApplicationSql = statement(
  'update-application',
  `UPDATE applications SET name = $2, homepage = $3, description = $4, redirect_uris = $5, grant_types = $6,
     authenticated_refresh = $7
   WHERE client_id = $1`,
);
const setIntrospectionSql = statement(
  'set-application-introspection',
  'UPDATE applications SET may_introspect = $2 WHERE client_id = $1',
);
// Returns no row for an application that is disabled already, whose time stays.
const setDisabledSql = statement<{ client_id: string }>(
  'set-application-disabled',
  `UPDATE applications SET disabled_at_ms = $2
   WHERE client_id = $1 AND CASE WHEN disabled_at_ms IS NULL THEN 0 ELSE 1 END <> $3 RETURNING client_id`,
);
const deleteSecretsSql = statement(
  'delete-application-secrets',
  'DELETE FROM application_secrets WHERE client_id = $1',
);
const deleteConsentsSql = statement('delete-application-consents', 'DELETE FROM consents WHERE client_id = $1');
const deleteApplicationSql = statement<{ client_id: string }>(
  'delete-application',
  'DELETE FROM applications WHERE client_id = $1 RETURNING client_id',
);
const markSecretInSql = statement(
  'mark-secret-in-query',
  'UPDATE applications SET secret_in_query_at_ms = $2 WHERE client_id = $1',
);

function toClient(row: ClientRow): Client {
  return {
    clientId: row.client_id,
    ownerId: row.owner_id ?? undefined,
    isPublic: row.is_public === 1,
    grantTypes: row.grant_types.split(' ') as GrantType[],
    authenticatedRefresh: row.authenticated_refresh === 1,
    mayIntrospect: row.may_introspect === 1,
    secretInQueryAtMs: row.secret_in_query_at_ms ?? undefined,
    disabledAtMs: row.disabled_at_ms ?? undefined,
  };
}

function toApplication(row: ApplicationRow): Application {
  return {
    ...toClient(row),
    name: row.name,
    homepage: row.homepage,
    description: row.description,
    redirectUris: JSON.parse(row.redirect_uris) as string[],
    createdAtMs: row.created_at_ms,
  };
}

export async function findApplication(store: Store, clientId: string): Promise<Application | undefined> {
  const [row] = await store.read(applicationByIdSql, [clientId]);
  return row && toApplication(row);
}

export async function findApplicationIn(transaction: Transaction, clientId: string): Promise<Application | undefined> {
  const [row] = await transaction.run(applicationByIdSql, [clientId]);
  return row && toApplication(row);
}

export async function findClientCredentials(store: Store, clientId: string): Promise<ClientCredentials | undefined> {
  const [row] = await store.readCached(credentialsByClientSql, [clientId]);
  if (row === undefined) return undefined;
  const secrets = [
    { slot: 1, hash: row.hash1, lastUsedAtMs: row.used1 ?? 0 },
    { slot: 2, hash: row.hash2, lastUsedAtMs: row.used2 ?? 0 },
  ].filter((secret): secret is { slot: number; hash: Uint8Array; lastUsedAtMs: number } => secret.hash !== null);
  return { application: toClient(row), secrets };
}

/** Newest first. */
export async function listApplications(store: Store, ownerId: string): Promise<Application[]> {
  return (await store.read(applicationsOfOwnerSql, [ownerId])).map(toApplication);
}

/** Applications in the order of their ids, from the one after `afterClientId` on. */
export async function listAllApplications(store: Store, limit: number, afterClientId = ''): Promise<Application[]> {
  return (await store.read(applicationsAfterSql, [afterClientId, limit])).map(toApplication);
}

/** The most applications of one person. Those of the service itself are not limited. */
export const MAX_APPLICATIONS = 100;

export interface ApplicationInsert {
  readonly application: Application;
  readonly audit: BoundStatement;
}

/** Returns false if the owner has `MAX_APPLICATIONS`. Counts and inserts in one transaction, so two calls cannot exceed it. */
export const insertApplicationOnce: Procedure<ApplicationInsert, boolean> = procedure(
  import.meta.url,
  'insertApplicationOnce',
  async (transaction, { application, audit }) => {
    const { ownerId } = application;
    const [count] = ownerId === undefined ? [] : await transaction.run(countOfOwnerSql, [ownerId]);
    if ((count?.total ?? 0) >= MAX_APPLICATIONS) return false;
    await transaction.run(insertApplicationSql, toInsert(application));
    await transaction.run(audit.statement, audit.parameters);
    return true;
  },
);

function toInsert(application: Application): SqlValue[] {
  return [
    application.clientId,
    application.name,
    application.ownerId ?? null,
    application.homepage,
    application.description,
    application.isPublic ? 1 : 0,
    JSON.stringify(application.redirectUris),
    application.grantTypes.join(' '),
    application.authenticatedRefresh ? 1 : 0,
    application.mayIntrospect ? 1 : 0,
    application.createdAtMs,
  ];
}

export function updateApplicationStatement(application: Application): BoundStatement {
  return {
    statement: updateApplicationSql,
    parameters: [
      application.clientId,
      application.name,
      application.homepage,
      application.description,
      JSON.stringify(application.redirectUris),
      application.grantTypes.join(' '),
      application.authenticatedRefresh ? 1 : 0,
    ],
  };
}

export function setIntrospectionStatement(clientId: string, mayIntrospect: 0 | 1): BoundStatement {
  return { statement: setIntrospectionSql, parameters: [clientId, mayIntrospect] };
}

/**
 * Returns a row if that changes the application; `null` enables it. Its tokens stop at once, and work again when it is enabled.
 */
export function setApplicationDisabledStatement(clientId: string, disabledAtMs: number | null): BoundStatement {
  return { statement: setDisabledSql, parameters: [clientId, disabledAtMs, disabledAtMs === null ? 0 : 1] };
}

/** Returns a row if the application exists. Tokens without an application are invalid; the sweeper deletes their rows later. */
export function deleteApplicationStatement(clientId: string): BoundStatement {
  return { statement: deleteApplicationSql, parameters: [clientId] };
}

/** Deletes the secrets and consents of a deleted application. */
export function deleteBelongingsStatements(clientId: string): BoundStatement[] {
  return [deleteSecretsSql, deleteConsentsSql].map((each) => ({ statement: each, parameters: [clientId] }));
}

export function markSecretInQueryStatement(clientId: string, nowMs: number): BoundStatement {
  return { statement: markSecretInSql, parameters: [clientId, nowMs] };
}
