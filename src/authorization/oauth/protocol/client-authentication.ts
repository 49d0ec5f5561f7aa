/**
 * Authenticates the client of a request by Basic, form, JSON or query credentials (RFC 6749 §2.3, `invalid_client`). After a
 * failed authentication, the code or token of the request is not used.
 */
import { Buffer } from 'node:buffer';
import { auditStatement } from '../../accounts/audit-store.ts';
import { hashSecret, isSameHash } from '../../accounts/secret-text.ts';
import { markSecretUsedStatement } from '../../applications/application-secret-store.ts';
import {
  type Client,
  type ClientCredentials,
  findClientCredentials,
  markSecretInQueryStatement,
} from '../../applications/application-store.ts';
import type { ProtocolDependencies } from '../../tokens/protocol-dependencies.ts';
import { createOAuthFailure, refuseClient } from './oauth-error.ts';
import type { RequestParameters } from './parameters.ts';

/** The unproven claims of a request about its client. */
export interface PresentedClient {
  readonly clientId: string | undefined;
  readonly secret: string | undefined;
  readonly isSecretInQuery: boolean;
}

export interface AuthenticatedClient {
  readonly application: Client;
  /** False for a public client, and for a confidential client that sent its id without a secret. */
  readonly isAuthenticated: boolean;
}

export function readClient(authorization: string | undefined, parameters: RequestParameters): PresentedClient {
  const clientId = parameters.values.get('client_id');
  const secret = parameters.values.get('client_secret');
  const isSecretInQuery = parameters.inQuery.has('client_secret');
  const basic = authorization === undefined ? undefined : readBasic(authorization);
  if (basic === undefined) return { clientId, secret, isSecretInQuery };
  if (secret !== undefined) throw createOAuthFailure('invalid_request', 'The client authenticates in two ways at once');
  if (clientId !== undefined && clientId !== basic.clientId)
    throw createOAuthFailure('invalid_request', 'The client_id differs from the authenticated client');
  return { clientId: basic.clientId, secret: basic.secret, isSecretInQuery: false };
}

/** Returns undefined for another authentication scheme. */
function readBasic(
  authorization: string,
): { readonly clientId: string; readonly secret: string | undefined } | undefined {
  const match = /^basic +(.*)$/i.exec(authorization);
  if (match === null) return undefined;
  const encoded = (match[1] ?? '').trim();
  if (!/^[A-Za-z0-9+/_-]+=*$/.test(encoded)) throw refuseClient();
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colonAt = text.indexOf(':');
  if (colonAt < 1) throw refuseClient();
  const secret = decodeForm(text.slice(colonAt + 1));
  return { clientId: decodeForm(text.slice(0, colonAt)), secret: secret === '' ? undefined : secret };
}

/** Decodes the id or secret, which are form-encoded inside Basic (RFC 6749 §2.3.1). Throws if that is not possible. */
function decodeForm(text: string): string {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '));
    if (/\p{Cc}/u.test(decoded)) throw refuseClient();
    return decoded;
  } catch {
    throw refuseClient();
  }
}

const NO_HASH = new Uint8Array(32);

/**
 * Throws `invalid_client` for an unknown client, a wrong secret, or a disabled application, with the same answer and the same
 * work for each. For a confidential client that sent no secret, `isAuthenticated` is false; most grants refuse it.
 */
export async function authenticateClient(
  dependencies: ProtocolDependencies,
  presented: PresentedClient & { readonly clientId: string },
  address: string,
): Promise<AuthenticatedClient> {
  const credentials = await findClientCredentials(dependencies.store, presented.clientId);
  const slot = presented.secret === undefined ? undefined : findSecretSlot(credentials, presented.secret);
  const isRefused = presented.secret !== undefined && slot === undefined;
  if (credentials === undefined || isRefused || credentials.application.disabledAtMs !== undefined) {
    // Over the limit, a wrong secret is answered with 429 and not recorded. A right one is not limited: others at this address
    // must not lock out a client that has its secret.
    dependencies.limits.checkAndCount('client', `${presented.clientId}|${address}`);
    await recordFailure(dependencies, {
      clientId: presented.clientId,
      ownerId: credentials?.application.ownerId,
      address,
    });
    throw refuseClient();
  }
  if (slot !== undefined)
    recordSecretUse(dependencies, { credentials, slot, isInQuery: presented.isSecretInQuery, address });
  return { application: credentials.application, isAuthenticated: slot !== undefined };
}

function findSecretSlot(credentials: ClientCredentials | undefined, secret: string): number | undefined {
  const hash = hashSecret(secret);
  const secrets = credentials?.secrets ?? [];
  const matches = [secrets[0]?.hash ?? NO_HASH, secrets[1]?.hash ?? NO_HASH].map((known) => isSameHash(hash, known));
  return secrets[matches.indexOf(true)]?.slot;
}

interface FailedClient {
  readonly clientId: string;
  readonly ownerId: string | undefined;
  readonly address: string;
}

const MAX_CLIENT_ID_LENGTH = 100;

/**
 * Records the failure for an unknown client too, so that both answers take the same work. Client ids are printable ASCII
 * (RFC 6749 appendix A.1), so other characters are replaced: in an id that a stranger made up, they could change how the log reads.
 */
async function recordFailure(
  dependencies: ProtocolDependencies,
  { clientId, ownerId, address }: FailedClient,
): Promise<void> {
  const kind = 'client_authentication_failed';
  await dependencies.refusals.record({
    kind,
    userId: ownerId,
    clientId: clientId.slice(0, MAX_CLIENT_ID_LENGTH).replaceAll(/[^!-~]/g, '?'),
    address,
  });
}

interface SecretUse {
  readonly credentials: ClientCredentials;
  readonly slot: number;
  readonly isInQuery: boolean;
  readonly address: string;
}

const HOUR_MS = 3_600_000;

/**
 * Writes the last use at most once an hour, and the use in a query once a day, without waiting: these times are only shown to the
 * owner, and must not cost a write in every exchange. A time in the future was written by a wrong clock, and is replaced.
 */
function recordSecretUse(
  dependencies: ProtocolDependencies,
  { credentials, slot, isInQuery, address }: SecretUse,
): void {
  const { application, secrets } = credentials;
  const { clientId, ownerId } = application;
  const nowMs = dependencies.world.nowMs();
  const lastUsedAtMs = secrets.find((secret) => secret.slot === slot)?.lastUsedAtMs ?? 0;
  const statements = [
    ...(Math.abs(nowMs - lastUsedAtMs) > HOUR_MS ? [markSecretUsedStatement(clientId, slot, nowMs)] : []),
    ...(isInQuery && Math.abs(nowMs - (application.secretInQueryAtMs ?? 0)) > 24 * HOUR_MS
      ? [
          markSecretInQueryStatement(clientId, nowMs),
          auditStatement({ kind: 'secret_in_query', userId: ownerId, clientId, address }, nowMs),
        ]
      : []),
  ];
  if (statements.length === 0) return;
  dependencies.store
    .writeAll(statements)
    .catch((err: unknown) => dependencies.log.warn({ err, clientId }, 'Cannot record the use of a secret'));
}
