/** Creates and changes OAuth applications: the rules for names, grants, redirects and secrets. */
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { BY_COMMAND } from '../../operations/by-command.ts';
import type { World } from '../../world.ts';
import { type AuditKind, auditStatement } from '../accounts/audit-store.ts';
import { hasHiddenCharacter, isReadableName } from '../accounts/login.ts';
import { createRandomText, createSecret, hashSecret } from '../accounts/secret-text.ts';
import { insertSecretOnce, removeSecretOnce } from './application-secret-store.ts';
import {
  type Application,
  deleteApplicationStatements,
  type GrantType,
  insertApplicationOnce,
  MAX_APPLICATIONS,
  setApplicationDisabledStatement,
  updateApplicationStatement,
} from './application-store.ts';
import { checkRegistrableUri } from './redirect-uri.ts';

/** The settings of an application that its owner chooses. */
export interface ApplicationForm {
  readonly name: string;
  readonly homepage: string;
  readonly description: string;
  readonly redirectUris: readonly string[];
  readonly isPublic: boolean;
  readonly grantTypes?: readonly GrantType[] | undefined;
  readonly authenticatedRefresh?: boolean | undefined;
  /** Only operators set it: a resource server may introspect every token. */
  readonly mayIntrospect?: boolean | undefined;
}

/** Who changes it. Undefined for the command line. */
export interface Actor {
  readonly userId: string | undefined;
  readonly address?: string | undefined;
}

export interface CreatedApplication {
  readonly application: Application;
  /** Shown once; undefined for a public application. */
  readonly clientSecret: string | undefined;
}

/** The grants of an application that names none. */
export const DEFAULT_GRANTS: readonly GrantType[] = ['authorization_code', 'refresh_token'];
const MAX_REDIRECT_URIS = 20;
const CLIENT_ID_LENGTH = 20;

export interface NewApplication {
  readonly form: ApplicationForm;
  readonly actor: Actor;
  /** Who may change it; the actor unless given. */
  readonly owner?: { readonly id: string | undefined };
}

/** Throws `invalid` with the field that breaks a rule, `conflict` when the owner has too many. */
export async function createApplication(
  store: Store,
  world: World,
  { form, actor, owner = { id: actor.userId } }: NewApplication,
): Promise<CreatedApplication> {
  checkForm(form);
  const nowMs = world.nowMs();
  // A prefix of its own: a client id can never look like a user id (RFC 9700 §4.15).
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

export async function updateApplication(
  store: Store,
  world: World,
  change: { readonly application: Application; readonly form: ApplicationForm; readonly actor: Actor },
): Promise<Application> {
  const { application, actor } = change;
  const form = {
    ...change.form,
    isPublic: application.isPublic,
    grantTypes: change.form.grantTypes ?? application.grantTypes,
    authenticatedRefresh: change.form.authenticatedRefresh ?? application.authenticatedRefresh,
  };
  checkForm(form, application);
  const { mayIntrospect, disabledAtMs, secretInQueryAtMs } = application;
  const updated = { ...toApplication(form, application), mayIntrospect, disabledAtMs, secretInQueryAtMs };
  await store.writeAll([
    updateApplicationStatement(updated),
    createAuditStatement('application_changed', updated, { actor, nowMs: world.nowMs() }),
  ]);
  return updated;
}

/** Deletes an application; its tokens are invalid from then on. */
export async function deleteApplication(
  store: Store,
  world: World,
  { application, actor }: { readonly application: Application; readonly actor: Actor },
): Promise<void> {
  await store.writeAll([
    ...deleteApplicationStatements(application.clientId),
    createAuditStatement('application_deleted', application, { actor, nowMs: world.nowMs() }),
  ]);
}

/** A second live secret, so that the first can be replaced without downtime. Throws `conflict` when two live already. */
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
  if (outcome === 'full')
    throw new Failure('conflict', 'Cannot add a secret: two are live already, remove one of them first');
  return secret;
}

/** Throws `conflict` for the last one: an application without a secret could not renew its tokens. */
export async function removeSecret(
  store: Store,
  world: World,
  { application, slot, actor }: { readonly application: Application; readonly slot: number; readonly actor: Actor },
): Promise<void> {
  const { clientId } = application;
  const audit = createAuditStatement('application_secret_removed', application, { actor, nowMs: world.nowMs() });
  const outcome = await store.call(removeSecretOnce, { clientId, slot, audit });
  if (outcome === 'absent') throw new Failure('not_found', 'Cannot remove the secret: this slot has no secret');
  if (outcome === 'last')
    throw new Failure('conflict', 'Cannot remove the secret: it is the last one, add another first');
}

/** All its tokens stop at once; they work again when it is enabled. */
export async function setApplicationDisabled(
  store: Store,
  world: World,
  change: { readonly application: Application; readonly isDisabled: boolean; readonly actor: Actor },
): Promise<void> {
  const nowMs = world.nowMs();
  await store.writeAll([
    setApplicationDisabledStatement(change.application.clientId, change.isDisabled ? nowMs : null),
    createAuditStatement(change.isDisabled ? 'application_disabled' : 'application_enabled', change.application, {
      actor: change.actor,
      nowMs,
    }),
  ]);
}

function createAuditStatement(
  kind: AuditKind,
  { clientId, ownerId, name }: Application,
  { actor, nowMs }: { readonly actor: Actor; readonly nowMs: number },
) {
  const details = { name, ...(actor.userId === undefined ? BY_COMMAND : {}) };
  return auditStatement(
    { kind, userId: ownerId, actorId: actor.userId, clientId, address: actor.address, details },
    nowMs,
  );
}

function toApplication(
  form: ApplicationForm,
  fixed: Pick<Application, 'clientId' | 'ownerId' | 'createdAtMs'>,
): Application {
  return {
    clientId: fixed.clientId,
    ownerId: fixed.ownerId,
    createdAtMs: fixed.createdAtMs,
    name: form.name.trim(),
    homepage: form.homepage.trim(),
    description: form.description.trim(),
    isPublic: form.isPublic,
    redirectUris: form.redirectUris,
    grantTypes: form.grantTypes ?? DEFAULT_GRANTS,
    authenticatedRefresh: form.authenticatedRefresh ?? false,
    mayIntrospect: form.mayIntrospect ?? false,
    secretInQueryAtMs: undefined,
    disabledAtMs: undefined,
  };
}

/** What is stored from before a rule may stay: a name or description with hidden characters, a redirect URI. */
function checkForm(form: ApplicationForm, stored?: Pick<Application, 'name' | 'description' | 'redirectUris'>): void {
  const name = form.name.trim();
  if (name === '' || name.length > 100) throw refuse('name', 'must be 1 to 100 characters');
  if (name !== stored?.name && !isReadableName(name))
    throw refuse('name', 'must be readable, without hidden characters');
  if (form.description.length > 1000) throw refuse('description', 'must be at most 1000 characters');
  const { description } = form;
  if (description !== stored?.description && hasHiddenCharacter(description.replaceAll(/[\r\n\t]/g, ' ')))
    throw refuse('description', 'must be readable, without hidden characters');
  const homepage = form.homepage.trim();
  if (homepage !== '' && !isHttpUrl(homepage)) throw refuse('homepage', 'must be an http or https URL');
  checkGrants(form);
  if (form.redirectUris.length > MAX_REDIRECT_URIS)
    throw refuse('redirect_uri', `must be at most ${MAX_REDIRECT_URIS} URIs`);
  for (const uri of form.redirectUris) if (!stored?.redirectUris.includes(uri)) checkRegistrableUri(uri, form);
}

function checkGrants({ grantTypes = DEFAULT_GRANTS, isPublic, redirectUris }: ApplicationForm): void {
  if (isPublic && grantTypes.includes('client_credentials'))
    throw refuse('grant_types', 'must not have client_credentials: a public application has no secret');
  if (grantTypes.length === 0) throw refuse('grant_types', 'must name at least one grant');
  if (grantTypes.includes('authorization_code') && redirectUris.length === 0)
    throw refuse('redirect_uri', 'must name at least one URI');
}

function refuse(field: string, rule: string): Failure {
  return new Failure('invalid', `Cannot save the application: ${field} ${rule}`, { field });
}

function isHttpUrl(text: string): boolean {
  return (
    text.length <= 2000 && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) && !hasHiddenCharacter(text)
  );
}
