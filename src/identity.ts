/** Declares the identity behind a bearer token, and the owner of a repository or application. */

/** The identity behind a bearer token. */
export interface Identity {
  readonly userId: string;
  readonly login: string;
  /** The person administers the service, and the token has the scope `admin`. */
  readonly isAdmin: boolean;
  /** The scopes in effect: those for administrators are left out once the person is not an administrator. */
  readonly scopes: readonly string[];
  /** `owner/name` in lower case: the token reaches these repositories and no others. Undefined without such a limit. */
  readonly repositories?: readonly string[] | undefined;
  /** `access` was granted to an application, `personal` was made by its user. */
  readonly tokenKind: 'access' | 'personal';
  /** The id of a personal token. */
  readonly tokenId?: string;
  /** The application, for an access token. */
  readonly clientId?: string;
}

/** Returns the identity behind a token, or undefined when the token is unknown, expired or revoked. A revocation takes effect at once. */
export type VerifyToken = (token: string) => Promise<Identity | undefined>;

/** Who owns a repository: a person or an organization, under one name space of logins. */
export interface Owner {
  readonly kind: 'user' | 'organization';
  readonly id: string;
  readonly login: string;
  readonly name: string;
}

/** What other areas can query about people and organizations. */
export interface Owners {
  findOwner(login: string): Promise<Owner | undefined>;
  /** Whether the person is the owner, an owner of the organization, or an administrator of the service. */
  canAdminister(identity: Pick<Identity, 'userId' | 'isAdmin'>, owner: Pick<Owner, 'kind' | 'id'>): Promise<boolean>;
  /** Returns the person, and the organizations that the person owns. */
  listAdministered(identity: Pick<Identity, 'userId' | 'login'>): Promise<Owner[]>;
}

/**
 * Returns those of the repositories (`owner/name`) that the person cannot access: they do not exist, or are private ones of others.
 * It does not reveal which.
 */
export type FindUnknownRepositories = (
  person: Pick<Identity, 'userId'>,
  names: readonly string[],
) => Promise<readonly string[]>;
