/** Creates and revokes personal access tokens: names, scopes, expiry, limit to repositories. */
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { FindUnknownRepositories } from '../../identity.ts';
import { BY_COMMAND } from '../../operations/by-command.ts';
import { isAdministratorScope } from '../../scopes.ts';
import type { World } from '../../world.ts';
import { auditStatement } from '../accounts/audit-store.ts';
import { isReadableName } from '../accounts/login.ts';
import { createSecret, hashSecret } from '../accounts/secret-text.ts';
import { findUserById } from '../accounts/user-store.ts';
import { isOpenIdScope, type Scope } from '../applications/scope.ts';
import {
  deletePersonalTokenOnce,
  findPersonalToken,
  insertPersonalTokenOnce,
  MAX_PERSONAL_TOKENS,
  type PersonalToken,
} from './personal-token-store.ts';

export interface PersonalTokenForm {
  readonly userId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** `owner/name` of the only repositories that the token reaches; undefined for all that its person reaches. */
  readonly repositories?: readonly string[] | undefined;
  /** Called before the token is stored, so that its failure cannot lose the only copy of a stored token. */
  readonly findUnknownRepositories?: FindUnknownRepositories | undefined;
  /** Undefined for a token that does not expire. */
  readonly expiresAtMs: number | undefined;
  /** The personal token that creates it; revoking that one revokes both. */
  readonly parentId?: string | undefined;
  /** The generation of the session that creates it: if a new password has ended the session, no token is created. */
  readonly credentialGeneration?: number | undefined;
  readonly actorId?: string | undefined;
  readonly address?: string | undefined;
  /** True if a command on the store creates it. */
  readonly isByCommand?: boolean;
}

/** The default lifetime on pages, in the API and on the command line, in days. */
export const DEFAULT_PERSONAL_TOKEN_DAYS = 30;

export interface NewPersonalToken {
  readonly token: PersonalToken;
  /** The token's text, which is not stored. */
  readonly secret: string;
  /** Those of its repositories that do not exist, or that its person may not see. */
  readonly unknownRepositories: readonly string[];
}

/** Throws `invalid` with the field that breaks a rule, and `conflict` if the person has too many tokens. */
export async function createPersonalToken(
  store: Store,
  world: World,
  form: PersonalTokenForm,
): Promise<NewPersonalToken> {
  const nowMs = world.nowMs();
  checkForm(form, nowMs);
  await checkAdminScope(store, form);
  const secret = createSecret('personal', world);
  const token = draftToken(form, { tokenId: world.uuid(), hint: secret.slice(-4), nowMs });
  const unknownRepositories = (await form.findUnknownRepositories?.(token, token.repositories ?? [])) ?? [];
  const outcome = await store.call(insertPersonalTokenOnce, {
    token,
    hash: hashSecret(secret),
    parentId: form.parentId,
    credentialGeneration: form.credentialGeneration,
    audit: auditCreation(form, token),
  });
  if (outcome === 'ended')
    throw new Failure('conflict', 'Cannot create the token: the session or token that makes it has ended');
  if (outcome === 'full')
    throw new Failure(
      'conflict',
      `Cannot create the token: a person has at most ${MAX_PERSONAL_TOKENS} that have not expired; revoke one first`,
    );
  return { token, secret, unknownRepositories };
}

function draftToken(
  form: PersonalTokenForm,
  { tokenId, hint, nowMs }: { readonly tokenId: string; readonly hint: string; readonly nowMs: number },
): PersonalToken {
  return {
    tokenId,
    userId: form.userId,
    name: form.name.trim(),
    scopes: form.scopes,
    ...(form.repositories === undefined ? {} : { repositories: readRepositories(form) }),
    hint,
    createdAtMs: nowMs,
    expiresAtMs: form.expiresAtMs,
    lastUsedAtMs: undefined,
  };
}

function auditCreation({ userId, actorId, address, isByCommand }: PersonalTokenForm, token: PersonalToken) {
  const details = {
    name: token.name,
    scope: token.scopes.join(' '),
    ...(token.repositories === undefined ? {} : { repositories: token.repositories.join(' ') }),
    ...(isByCommand ? BY_COMMAND : {}),
  };
  return auditStatement({ kind: 'personal_token_created', userId, actorId, address, details }, token.createdAtMs);
}

export interface ExpiryWish {
  readonly userId: string;
  /** The personal token that creates another. */
  readonly parentId: string;
  /** `null` for a token that does not expire; undefined for `DEFAULT_PERSONAL_TOKEN_DAYS`, or less. */
  readonly days: number | null | undefined;
}

const DAY_MS = 86_400_000;

/** Returns when a token that another token creates expires: never after that one. Throws `invalid` if a later time is requested. */
export async function decideExpiry(
  store: Store,
  world: World,
  { userId, parentId, days }: ExpiryWish,
): Promise<number | undefined> {
  const parent = await findPersonalToken(store, userId, parentId);
  const latestMs = parent?.expiresAtMs ?? Infinity;
  const askedMs = days === null ? Infinity : world.nowMs() + (days ?? DEFAULT_PERSONAL_TOKEN_DAYS) * DAY_MS;
  if (days !== undefined && askedMs > latestMs)
    throw refuse(
      'expires_in_days',
      `must not go beyond ${new Date(latestMs).toISOString()}, when the token that creates it expires`,
    );
  const endMs = Math.min(askedMs, latestMs);
  return endMs === Infinity ? undefined : endMs;
}

export interface RevokedToken {
  readonly userId: string;
  readonly tokenId: string;
  readonly actorId?: string | undefined;
  /** The application through which the actor revokes it. */
  readonly clientId?: string | undefined;
  readonly address?: string | undefined;
  /** True if a command on the store revokes it. */
  readonly isByCommand?: boolean;
  /** False for an actor who may not revoke a token of an administrator. */
  readonly hasAllRights?: boolean;
}

/**
 * Revokes a token and those that were created with it; from the next call on, every process refuses them. Throws `not_found` if
 * this user has no such token, and `forbidden` for a token of an administrator unless the actor has all rights.
 */
export async function revokePersonalToken(
  store: Store,
  world: World,
  { userId, tokenId, actorId, clientId, address, isByCommand, hasAllRights = true }: RevokedToken,
): Promise<void> {
  const details = { token: tokenId, ...(isByCommand ? BY_COMMAND : {}) };
  const event = { kind: 'personal_token_revoked', userId, actorId, clientId, address, details } as const;
  const audit = auditStatement(event, world.nowMs());
  const isDeleted = await store.call(deletePersonalTokenOnce, { userId, tokenId, hasAllRights, audit });
  if (!isDeleted) throw new Failure('not_found', 'Cannot revoke the token: no token has this id');
}

function checkForm({ name, scopes, expiresAtMs }: PersonalTokenForm, nowMs: number): void {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > 100) throw refuse('name', 'must be 1 to 100 characters');
  if (!isReadableName(trimmed)) throw refuse('name', 'must be readable, without hidden characters');
  if (scopes.length === 0) throw refuse('scopes', 'must name at least one scope');
  const openId = scopes.find(isOpenIdScope);
  if (openId !== undefined) throw refuse('scopes', `must not have ${openId}: it is for applications`);
  if (expiresAtMs !== undefined && !(expiresAtMs > nowMs)) throw refuse('expires_at', 'must be in the future');
}

/** A token that is limited to some repositories can have only these scopes. */
const REPOSITORY_SCOPES: readonly Scope[] = [
  'all_projects',
  'all_pr',
  'all_issue',
  'all_note',
  'all_hook',
  'all_repository',
  'events:write',
];
const MAX_REPOSITORIES = 100;

function readRepositories({ repositories = [], scopes }: PersonalTokenForm): readonly string[] {
  const other = scopes.find((scope) => !REPOSITORY_SCOPES.includes(scope));
  if (other !== undefined)
    throw refuse(
      'scopes',
      `must be of ${REPOSITORY_SCOPES.join(', ')} when it is limited to repositories, got "${other}"`,
    );
  const wrong = repositories.find((name) => !/^[^\s/]{1,100}\/[^\s/]{1,100}$/.test(name));
  if (wrong !== undefined) throw refuse('repositories', `must be OWNER/NAME each, got "${wrong}"`);
  if (repositories.length === 0 || repositories.length > MAX_REPOSITORIES)
    throw refuse('repositories', `must name 1 to ${MAX_REPOSITORIES} repositories`);
  return [...new Set(repositories.map((name) => name.toLowerCase()))];
}

async function checkAdminScope(store: Store, { userId, scopes }: PersonalTokenForm): Promise<void> {
  const needing = scopes.find(isAdministratorScope);
  if (needing === undefined) return;
  const user = await findUserById(store, userId);
  if (user?.isAdmin !== true) throw refuse('scopes', `must not have ${needing}: the person is not an administrator`);
}

function refuse(field: string, rule: string): Failure {
  return new Failure('invalid', `Cannot create the token: ${field} ${rule}`, { field });
}
