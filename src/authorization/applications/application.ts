/** Creates, changes and deletes OAuth applications and their secrets, and records each change in the audit log. */
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { BY_COMMAND } from '../../operations/by-command.ts';
import type { World } from '../../world.ts';
import { type AuditKind, auditStatement, changeAndRecord } from '../accounts/audit-store.ts';
import { createRandomText, createSecret, hashSecret } from '../accounts/secret-text.ts';
import { changeApplicationOnce } from './application-change-store.ts';
import { type ApplicationChange, type ApplicationForm, checkForm, toApplication } from './application-form.ts';
import { insertSecretOnce, removeSecretOnce } from './application-secret-store.ts';
import {
  type Application,
  deleteApplicationStatement,
  deleteBelongingsStatements,
  findApplication,
  insertApplicationOnce,
  MAX_APPLICATIONS,
  setApplicationDisabledStatement,
} from './application-store.ts';

/** Who makes the change; a command on the store has no person. */
export interface Actor {
  readonly userId: string | undefined;
  readonly address?: string | undefined;
  /** The application that holds the caller's token, unless the person made the token. */
  readonly clientId?: string | undefined;
}

export interface CreatedApplication {
  readonly application: Application;
  /** Shown once; undefined for a public application. */
  readonly clientSecret: string | undefined;
}

const CLIENT_ID_LENGTH = 20;

export interface NewApplication {
  readonly form: ApplicationForm;
  readonly actor: Actor;
  /** The person who may change it; the actor if absent. */
  readonly owner?: { readonly id: string | undefined };
}

/** Throws `invalid` with the field that breaks a rule, and `conflict` if the owner has too many applications. */
export async function createApplication(
  store: Store,
  world: World,
  { form, actor, owner = { id: actor.userId } }: NewApplication,
): Promise<CreatedApplication> {
  checkForm(form);
  const nowMs = world.nowMs();
  // The prefix keeps a client id from looking like a user id (RFC 9700 §4.15).
  const clientId = `app_${createRandomText(CLIENT_ID_LENGTH, world)}`;
  const application = toApplication(form, { clientId, ownerId: owner.id, createdAtMs: nowMs });
  const audit = createAuditStatement('application_created', application, { actor, nowMs });
  if (!(await store.call(insertApplicationOnce, { application, audit })))
    throw new Failure(
      'conflict',
      `Cannot create the application: a person has at most ${MAX_APPLICATIONS} of them; delete one first`,
    );
  const clientSecret = form.isPublic ? undefined : await addSecret(store, world, { application, actor });
  return { application, clientSecret };
}

/** Absent fields stay as they are stored. Throws as `createApplication` does, and `not_found` for a deleted application. */
export async function updateApplication(
  store: Store,
  world: World,
  {
    application,
    change,
    actor,
  }: { readonly application: Application; readonly change: ApplicationChange; readonly actor: Actor },
): Promise<Application> {
  const renamed = { ...application, name: change.name?.trim() ?? application.name };
  const audit = createAuditStatement('application_changed', renamed, { actor, nowMs: world.nowMs() });
  const updated = await store.call(changeApplicationOnce, { clientId: application.clientId, change, audit });
  if (updated === undefined) throw refuseDeleted(application);
  return updated;
}

/** Deletes an application, whose tokens become invalid at once. Throws `not_found` if it was deleted before. */
export async function deleteApplication(
  store: Store,
  world: World,
  { application, actor }: { readonly application: Application; readonly actor: Actor },
): Promise<void> {
  const audit = createAuditStatement('application_deleted', application, { actor, nowMs: world.nowMs() });
  const deletion = {
    change: deleteApplicationStatement(application.clientId),
    statements: [...deleteBelongingsStatements(application.clientId), audit],
  };
  if (!(await store.call(changeAndRecord, deletion))) throw refuseDeleted(application);
}

function refuseDeleted({ clientId }: Application): Failure {
  return new Failure('not_found', `Application not found: ${clientId}`);
}

/** Adds a second secret, so that the first can be replaced without downtime. Throws `conflict` if there are two already. */
export async function addSecret(
  store: Store,
  world: World,
  { application, actor }: { readonly application: Application; readonly actor: Actor },
): Promise<string> {
  if (application.isPublic)
    throw new Failure('invalid', 'Cannot add a secret: a public application has none, it uses PKCE');
  const secret = createSecret('client', world);
  const nowMs = world.nowMs();
  const outcome = await store.call(insertSecretOnce, {
    clientId: application.clientId,
    secretHash: hashSecret(secret),
    hint: secret.slice(-4),
    nowMs,
    audit: createAuditStatement('application_secret_added', application, { actor, nowMs }),
  });
  if (outcome === 'deleted') throw refuseDeleted(application);
  if (outcome === 'full')
    throw new Failure('conflict', 'Cannot add a secret: two are live already, remove one of them first');
  return secret;
}

export interface SecretChoice {
  readonly application: Application;
  readonly slot: number;
  /** When the secret that a page shows was created: the slot may hold another one by now. */
  readonly createdAtMs?: number;
  readonly actor: Actor;
}

/**
 * Throws `conflict` for the last secret, since an application without one could not renew its tokens, and if the slot no longer
 * holds the secret of `createdAtMs`.
 */
export async function removeSecret(
  store: Store,
  world: World,
  { application, slot, createdAtMs, actor }: SecretChoice,
): Promise<void> {
  const { clientId } = application;
  const audit = createAuditStatement('application_secret_removed', application, { actor, nowMs: world.nowMs() });
  const outcome = await store.call(removeSecretOnce, { clientId, slot, createdAtMs, audit });
  if (outcome === 'absent') throw new Failure('not_found', 'Cannot remove the secret: this slot has no secret');
  if (outcome === 'other')
    throw new Failure('conflict', 'Cannot remove the secret: another one has taken its place meanwhile');
  if (outcome === 'last')
    throw new Failure('conflict', 'Cannot remove the secret: it is the last one, add another first');
}

/** Disabling stops all tokens of the application at once; they work again when it is enabled. Records only a change. */
export async function setApplicationDisabled(
  store: Store,
  world: World,
  change: { readonly application: Application; readonly isDisabled: boolean; readonly actor: Actor },
): Promise<void> {
  const { application, isDisabled, actor } = change;
  const nowMs = world.nowMs();
  const kind = isDisabled ? 'application_disabled' : 'application_enabled';
  const isChanged = await store.call(changeAndRecord, {
    change: setApplicationDisabledStatement(application.clientId, isDisabled ? nowMs : null),
    statements: [createAuditStatement(kind, application, { actor, nowMs })],
  });
  if (!isChanged && (await findApplication(store, application.clientId)) === undefined)
    throw refuseDeleted(application);
}

function createAuditStatement(
  kind: AuditKind,
  { clientId, ownerId, name }: Application,
  { actor, nowMs }: { readonly actor: Actor; readonly nowMs: number },
) {
  const details = {
    name,
    ...(actor.userId === undefined ? BY_COMMAND : {}),
    // `client_id` of the event is the application that was changed.
    ...(actor.clientId === undefined ? {} : { by_client: actor.clientId }),
  };
  return auditStatement(
    { kind, userId: ownerId, actorId: actor.userId, clientId, address: actor.address, details },
    nowMs,
  );
}
