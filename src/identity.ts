/** Declares who a bearer token speaks for, and who owns a repository or application. */

/** Who a bearer token speaks for. */
export interface Identity {
  readonly userId: string;
  readonly login: string;
  /** The person administers the service, and the token has the scope `admin`. */
  readonly isAdmin: boolean;
  /** The scopes that count now: those for administrators are left out once the person is no administrator. */
  readonly scopes: readonly string[];
  /** `owner/name` in lower case: the token reaches these repositories and no others. Undefined without such a limit. */
  readonly repositories?: readonly string[] | undefined;
  /** `access` was granted to an application, `personal` was made by its user. */
  readonly tokenKind: 'access' | 'personal';
  /** Which one, for a personal token. */
  readonly tokenId?: string;
  /** The application, for an access token. */
  readonly clientId?: string;
}

/** The identity behind a token, or undefined when it is unknown, expired or revoked. A revocation shows at once. */
export type VerifyToken = (token: string) => Promise<Identity | undefined>;

/** Who owns a repository: a person or an organization, under one name space of logins. */
export interface Owner {
  readonly kind: 'user' | 'organization';
  readonly id: string;
  readonly login: string;
  readonly name: string;
}

/** Other areas may ask this about people and organizations. */
export interface Owners {
  findOwner(login: string): Promise<Owner | undefined>;
  /** The owner itself, an owner of the organization, or an administrator of the service. */
  canAdminister(identity: Pick<Identity, 'userId' | 'isAdmin'>, owner: Pick<Owner, 'kind' | 'id'>): Promise<boolean>;
  /** The person, and the organizations that the person owns. */
  listAdministered(identity: Pick<Identity, 'userId' | 'login'>): Promise<Owner[]>;
}

/**
 * Of repositories, as `owner/name`, those that this person does not reach: they do not exist, or are private ones of others. It does
 * not tell which of both.
 */
export type FindUnknownRepositories = (
  person: Pick<Identity, 'userId'>,
  names: readonly string[],
) => Promise<readonly string[]>;
