/** Checks the names, grants and redirect URIs of OAuth applications, and decides what a change leaves as it is. */
import { Failure } from '../../errors.ts';
import { hasHiddenCharacter, isReadableName } from '../accounts/login.ts';
import { type Application, GRANT_TYPES, type GrantType } from './application-store.ts';
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
  /** For a resource server, which may introspect every token. Only administrators and commands can set it. */
  readonly mayIntrospect?: boolean | undefined;
}

/** Absent fields stay as they are stored. */
export interface ApplicationChange {
  readonly name?: string | undefined;
  readonly homepage?: string | undefined;
  readonly description?: string | undefined;
  readonly redirectUris?: readonly string[] | undefined;
  readonly grantTypes?: readonly GrantType[] | undefined;
  /** Adds and removes single grants, for a form that does not show all of them. */
  readonly grants?: Readonly<Partial<Record<GrantType, boolean | undefined>>> | undefined;
  readonly authenticatedRefresh?: boolean | undefined;
}

/** The grants of an application that names none. */
export const DEFAULT_GRANTS: readonly GrantType[] = ['authorization_code', 'refresh_token'];
const MAX_REDIRECT_URIS = 20;

/** Throws as `checkForm` does. */
export function applyChange(stored: Application, change: ApplicationChange): Application {
  const { name = stored.name, homepage = stored.homepage, description = stored.description } = change;
  const { redirectUris = stored.redirectUris, grantTypes = stored.grantTypes, grants } = change;
  const form = {
    name,
    homepage,
    description,
    redirectUris,
    isPublic: stored.isPublic,
    grantTypes:
      grants === undefined ? grantTypes : GRANT_TYPES.filter((grant) => grants[grant] ?? grantTypes.includes(grant)),
    // An earlier release allowed this for a public application, which then could not refresh. The next change clears it.
    authenticatedRefresh: change.authenticatedRefresh ?? (stored.authenticatedRefresh && !stored.isPublic),
  };
  checkForm(form, stored);
  const { mayIntrospect, disabledAtMs, secretInQueryAtMs } = stored;
  return { ...toApplication(form, stored), mayIntrospect, disabledAtMs, secretInQueryAtMs };
}

export function toApplication(
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

/**
 * Throws `invalid` with the field that breaks a rule. Values stored before a rule existed may stay: a name or description with
 * hidden characters, or a redirect URI.
 */
export function checkForm(
  form: ApplicationForm,
  stored?: Pick<Application, 'name' | 'description' | 'redirectUris'>,
): void {
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

function checkGrants({
  grantTypes = DEFAULT_GRANTS,
  isPublic,
  redirectUris,
  authenticatedRefresh,
}: ApplicationForm): void {
  if (isPublic && authenticatedRefresh === true)
    throw refuse('authenticated_refresh', 'must not be set: a public application has no secret');
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
