/** Decides who may see and who may administer a repository (403, 404), with GitCode's error texts. */
import type { Store } from '../../database/store.ts';
import { Failure, isFailure, isOrphan } from '../../errors.ts';
import type { FindUnknownRepositories, Identity, Owner, Owners } from '../../identity.ts';
import type { Repository } from './repository.ts';
import { findRepositoryByPath } from './repository-store.ts';

type Caller = Pick<Identity, 'userId' | 'isAdmin' | 'repositories'> & Partial<Pick<Identity, 'login' | 'clientId'>>;

export interface RepositoryAccess {
  /** Throws 404 if it does not exist or the caller may not see it, and 403 if the caller may see but not administer it. */
  findAdministered(caller: Caller, owner: string, path: string): Promise<Repository>;
  /** Throws 404 if it does not exist or the caller may not see it. A public repository is visible to all. */
  findVisible(caller: Caller, owner: string, path: string): Promise<Repository>;
  /** Finds a repository without a check, for callers that are authenticated in another way: a bridge, or the command line. */
  find(owner: string, path: string): Promise<Repository>;
}

export function createRepositoryAccess(store: Store, owners: Owners): RepositoryAccess {
  const locate = async (login: string, path: string, caller?: Caller) => {
    const owner = findOwnAccount(caller, login) ?? (await owners.findOwner(login));
    const repository = owner && (await findRepositoryByPath(store, owner.id, path));
    if (owner === undefined || repository === undefined) throw refuseUnknown(login, path);
    return { owner, repository: { ...repository, ownerLogin: owner.login } };
  };
  return {
    find: async (login, path) => (await locate(login, path)).repository,
    findAdministered: async (caller, login, path) => {
      checkLimit(caller, login, path);
      const { owner, repository } = await locate(login, path, caller);
      if (await owners.canAdminister(caller, owner)) return repository;
      if (repository.isPrivate) throw refuseUnknown(login, path);
      throw new Failure('forbidden', '403 Forbidden - Unauthorized access');
    },
    findVisible: async (caller, login, path) => {
      checkLimit(caller, login, path);
      const { owner, repository } = await locate(login, path, caller);
      if (!repository.isPrivate || (await owners.canAdminister(caller, owner))) return repository;
      throw refuseUnknown(login, path);
    },
  };
}

export function createRepositoryCheck(store: Store, owners: Owners): FindUnknownRepositories {
  const access = createRepositoryAccess(store, owners);
  return async ({ userId }, names) => {
    const isKnown = async (name: string) => {
      const [owner = '', path = ''] = name.split('/');
      try {
        await access.findVisible({ userId, isAdmin: false }, owner, path);
        return true;
      } catch (error) {
        if (isFailure(error) && error.code === 'not_found') return false;
        throw error;
      }
    };
    const known = await Promise.all(names.map(isKnown));
    return names.filter((_, index) => !known[index]);
  };
}

/**
 * Returns the caller as the owner if the login matches, without a look-up: the check of the token has just read that account. The login
 * of an application that acts for itself is its client id, which is no account.
 */
function findOwnAccount(caller: Caller | undefined, login: string): Pick<Owner, 'kind' | 'id' | 'login'> | undefined {
  if (caller?.login !== login || caller.userId === caller.clientId) return undefined;
  return { kind: 'user', id: caller.userId, login };
}

/** Checked before any look-up, so that the answer reveals nothing about other repositories. */
function checkLimit({ repositories }: Caller, owner: string, path: string): void {
  if (repositories !== undefined && !repositories.includes(`${owner}/${path}`.toLowerCase()))
    throw refuseLimited(repositories);
}

/** Throws if the token is limited to repositories, for an operation that does not concern a single repository. */
export function checkUnlimited({ repositories }: Pick<Identity, 'repositories'>): void {
  if (repositories !== undefined) throw refuseLimited(repositories);
}

function refuseLimited(repositories: readonly string[]): Failure {
  return new Failure('forbidden', `Forbidden: the token is limited to ${repositories.join(', ')}`);
}

/** Throws 404 if a write fails because its repository was deleted after it was found. */
export async function refuseDeleted<T>({ ownerLogin, path }: Repository, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw isOrphan(error) ? refuseUnknown(ownerLogin, path) : error;
  }
}

/** The error code has GitCode's spelling. */
export function refuseUnknown(owner: string, path: string): Failure {
  return new Failure('not_found', `Project not found:${owner}/${path}`, { errorCodeName: 'UN_KNOW' });
}
