/** What a consent page shows: who asks, for whom, for what, and where it leads. */
import type { Application } from './application-store.ts';
import type { Scope } from './scope.ts';
import type { User } from './user-store.ts';

export interface ConsentView {
  readonly application: Pick<
    Application,
    'clientId' | 'name' | 'homepage' | 'description' | 'isPublic' | 'createdAtMs'
  >;
  /** Login of the owner; undefined for an application of the service itself. */
  readonly ownerLogin: string | undefined;
  /** Host of the application's home page; undefined when it named none. */
  readonly homepageHost: string | undefined;
  /** Where the answer goes: a host, or the scheme of a native application. Undefined for a device. */
  readonly redirectHost: string | undefined;
  readonly scopes: readonly { readonly scope: Scope; readonly isNew: boolean }[];
  readonly accessLifetimeSeconds: number;
  readonly user: User;
  readonly csrfToken: string;
  /** Hidden field `request`: the whole request, sealed and bound to this session. To be sent back as it is. */
  readonly request: string;
  /** Where the form posts to, with the fields `csrf_token`, `request` and `decision` = `allow` or `deny`. */
  readonly action: string;
  /** Where "use another account" leads. */
  readonly switchAccountUrl: string;
}
