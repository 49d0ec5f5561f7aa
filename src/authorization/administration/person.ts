/** Finds the person of an operation, and decides whether the actor may change them. */
import { z } from '@hono/zod-openapi';
import type { BoundStatement, Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { BY_COMMAND } from '../../operations/by-command.ts';
import type { Actor } from '../../operations/operation.ts';
import { refuseScope } from '../../scopes.ts';
import type { World } from '../../world.ts';
import { type AuditEvent, auditStatement } from '../accounts/audit-store.ts';
import { findUserByLogin, type User } from '../accounts/user-store.ts';
import type { UpstreamConfig } from '../sign-in/upstream.ts';
import type { CountToken } from '../tokens/token-metrics.ts';
import { findUserState, type UserState } from './people-store.ts';

export interface PeopleDependencies {
  readonly store: Store;
  readonly world: World;
  /** The OpenID provider that people may also sign in with; accounts linked at others cannot sign in. */
  readonly upstream?: { readonly config: Pick<UpstreamConfig, 'issuer'> } | undefined;
  /** Absent for commands, whose metrics are never scraped. */
  readonly countToken?: CountToken | undefined;
}

export const personSchema = z
  .object({
    id: z.string(),
    login: z.string(),
    name: z.string(),
    email: z.string().nullable(),
    isEmailVerified: z.boolean(),
    isAdmin: z.boolean(),
    createdAtMs: z.int(),
    disabledAtMs: z.int().nullable(),
    passwordChangedAtMs: z.int().nullable(),
    isInvited: z.boolean(),
  })
  .openapi('Account');

export type Person = z.infer<typeof personSchema>;

export function toPerson(user: UserState): Person {
  const {
    id,
    login,
    name,
    email,
    isEmailVerified,
    isAdmin,
    createdAtMs,
    disabledAtMs,
    passwordChangedAtMs,
    isInvited,
  } = user;
  return {
    id,
    login,
    name,
    email,
    isEmailVerified,
    isAdmin,
    createdAtMs,
    disabledAtMs,
    passwordChangedAtMs,
    isInvited,
  };
}

/** Throws `not_found`, and `forbidden` for an administrator's account unless the actor has all rights. */
export async function findChangeable(store: Store, actor: Actor, login: string): Promise<UserState> {
  const user = await findPersonState(store, login);
  if (user.isAdmin) checkAllRights(actor);
  return user;
}

export async function findPerson(store: Store, login: string): Promise<User> {
  return (await findUserByLogin(store, login)) ?? refuseUnknown(login);
}

export async function findPersonState(store: Store, login: string): Promise<UserState> {
  return (await findUserState(store, login)) ?? refuseUnknown(login);
}

function refuseUnknown(login: string): never {
  throw new Failure('not_found', `There is no person with the login "${login}"`);
}

/** Throws unless the actor has all rights. A caller who could change an administrator's account could act with all rights. */
export function checkAllRights(actor: Actor): void {
  if (!actor.isAdmin) throw refuseScope('admin');
}

/** Records an event. A command on the store has no person as its actor in the audit log. */
export function recordStatement(event: AuditEvent, actor: Actor, nowMs: number): BoundStatement {
  const by = actor.userId === undefined ? BY_COMMAND : {};
  const details = { ...by, ...event.details };
  const clientId = event.clientId ?? actor.clientId;
  return auditStatement({ ...event, actorId: actor.userId, clientId, address: actor.address, details }, nowMs);
}
