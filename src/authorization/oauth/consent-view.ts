/** Collects what a consent page shows, and reads which of the requested scopes the person chose. */
import { isAdministratorScope, permits } from '../../scopes.ts';
import { findUserById, type User } from '../accounts/user-store.ts';
import type { Application } from '../applications/application-store.ts';
import { isPrivateScheme } from '../applications/redirect-uri.ts';
import type { Scope } from '../applications/scope.ts';
import type { Session } from '../sign-in/sign-in-context.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { countPeople } from './protocol/consent-store.ts';

export const MANY_PEOPLE = 1000;
/** Every scope that is not narrow allows these too. */
const NEED_NO_SCOPE = ['predict', 'observe'] as const;

export interface ConsentView {
  readonly application: Pick<
    Application,
    'clientId' | 'name' | 'homepage' | 'description' | 'isPublic' | 'createdAtMs'
  >;
  /** Login of the owner; undefined for an application of the service itself. */
  readonly ownerLogin: string | undefined;
  /** How many people have allowed it; `MANY_PEOPLE` + 1 means more than `MANY_PEOPLE`. */
  readonly people: number;
  /** Host of the application's home page; undefined without one. */
  readonly homepageHost: string | undefined;
  /** Where the answer goes: a host, or the scheme of a native application. Undefined for a device. */
  readonly redirectHost: string | undefined;
  readonly scopes: readonly { readonly scope: Scope; readonly isNew: boolean }[];
  /** A token with these scopes may also request predictions or report observations, which no scope of the list mentions. */
  readonly mayAlsoPredict: boolean;
  /** The person may leave out some of the scopes. */
  readonly canDeselectScopes: boolean;
  readonly accessLifetimeSeconds: number;
  readonly user: User;
  readonly csrfToken: string;
  /** Hidden field `request`: the whole request, encrypted and bound to this session. The form returns it unchanged. */
  readonly request: string;
  /** Where the form posts to, with the fields `csrf_token`, `request` and `decision` = `allow` or `deny`. */
  readonly action: string;
  /** Where "use another account" leads; undefined if the application expects this account. */
  readonly switchAccountUrl: string | undefined;
}

export interface ConsentFacts {
  readonly application: Application;
  readonly session: Session;
  readonly scopes: readonly Scope[];
  readonly canDeselectScopes: boolean;
  readonly consented: readonly Scope[];
  readonly redirectUri: string | undefined;
  readonly request: string;
  readonly action: string;
  readonly switchAccountUrl: string | undefined;
}

export async function createConsentView(dependencies: ProtocolDependencies, facts: ConsentFacts): Promise<ConsentView> {
  const { application, session, consented, redirectUri } = facts;
  const owner =
    application.ownerId === undefined ? undefined : await findUserById(dependencies.store, application.ownerId);
  return {
    application,
    ownerLogin: owner?.login,
    people: await countPeople(dependencies.store, application.clientId, MANY_PEOPLE + 1),
    homepageHost: application.homepage === '' ? undefined : new URL(application.homepage).host,
    redirectHost: redirectUri === undefined ? undefined : describeTarget(redirectUri),
    scopes: facts.scopes.map((scope) => ({ scope, isNew: consented.length > 0 && !consented.includes(scope) })),
    mayAlsoPredict: NEED_NO_SCOPE.some((scope) => !facts.scopes.includes(scope) && permits(facts, scope)),
    // Administrator scopes always have boxes: the button alone never grants them.
    canDeselectScopes: (facts.canDeselectScopes && facts.scopes.length > 1) || facts.scopes.some(isAdministratorScope),
    accessLifetimeSeconds: dependencies.settings.accessTokenSeconds,
    user: session.user,
    csrfToken: session.csrfToken,
    request: facts.request,
    action: facts.action,
    switchAccountUrl: facts.switchAccountUrl,
  };
}

/**
 * Returns the host of a redirect URI, or its private scheme: the scheme alone decides which application opens, and anyone can
 * write any host after it.
 */
export function describeTarget(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return isPrivateScheme(redirectUri) ? protocol : host;
}

/**
 * Returns the requested scopes that the person chose. With the field `narrow`, the form had a box for each scope, but `openid` is
 * always kept. A form without boxes grants all but the administrator scopes.
 */
export function readChosenScopes(form: URLSearchParams, asked: readonly Scope[]): readonly Scope[] {
  if (!form.has('narrow')) return asked.filter((scope) => !isAdministratorScope(scope));
  const chosen = form.getAll('scope');
  return asked.filter((scope) => scope === 'openid' || chosen.includes(scope));
}
