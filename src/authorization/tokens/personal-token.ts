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
  /** `owner/name`; the token reaches these and no others. Undefined for all that its person reaches. */
  readonly repositories?: readonly string[] | undefined;
  /** Called before the token is stored, so that a failure of it does not lose the only copy of a token that was made. */
  readonly findUnknownRepositories?: FindUnknownRepositories | undefined;
  /** Undefined for a token that does not expire. */
  readonly expiresAtMs: number | undefined;
  /** The personal token that makes it: both end together. */
  readonly parentId?: string | undefined;
  /** The generation of the session that makes it: no token is made once that session has ended by a new password. */
  readonly credentialGeneration?: number | undefined;
  readonly actorId?: string | undefined;
  readonly address?: string | undefined;
  /** An operator makes it on the store. */
  readonly isByCommand?: boolean;
}

/** The default that pages and the API offer. */
export const DEFAULT_PERSONAL_TOKEN_DAYS = 30;

export interface NewPersonalToken {
  readonly token: PersonalToken;
  /** The token's text: it is here and nowhere else. */
  readonly secret: string;
  /** The repositories of its list that its person does not reach. */
  readonly unknownRepositories: readonly string[];
}

/** Throws `invalid` with the field, `conflict` when the person has too many. */
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
  /** The personal token that makes another. */
  readonly parentId: string;
  /** `null` for a token that does not expire; undefined for `DEFAULT_PERSONAL_TOKEN_DAYS`, or less. */
  readonly days: number | null | undefined;
}

const DAY_MS = 86_400_000;

/** The end of a token that another token creates: at the latest when that one ends. Throws `invalid` if a later end is requested. */
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
      `must not go beyond ${new Date(latestMs).toISOString()}, when the token that makes it ends`,
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
  /** An operator revokes it on the store. */
  readonly isByCommand?: boolean;
  /** False: the token of an administrator is not revoked. */
  readonly hasAllRights?: boolean;
}

/**
 * Throws `not_found` when this user has no such token, `forbidden` for an administrator's without all rights. Tokens that it made
 * end too. It is refused from the next call on, on every process.
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

/** The scopes of repositories: a token that is limited to some repositories can have no others. */
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
  if (user?.isAdmin !== true) throw refuse('scopes', `must not have ${needing}: the person is no administrator`);
}

function refuse(field: string, rule: string): Failure {
  return new Failure('invalid', `Cannot create the token: ${field} ${rule}`, { field });
}
