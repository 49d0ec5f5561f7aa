/** Decides who may see and who may administer a repository (403, 404), with GitCode's error texts. */
import type { Store } from '../../database/store.ts';
import { Failure, isFailure, isOrphan } from '../../errors.ts';
import type { FindUnknownRepositories, Identity, Owner, Owners } from '../../identity.ts';
import type { Repository } from './repository.ts';
import { findRepositoryByPath } from './repository-store.ts';

type Caller = Pick<Identity, 'userId' | 'isAdmin' | 'repositories'> & Partial<Pick<Identity, 'login' | 'clientId'>>;

export interface RepositoryAccess {
  /** 404 when it does not exist or the caller may not see it, 403 when the caller may see but not administer it. */
  findAdministered(caller: Caller, owner: string, path: string): Promise<Repository>;
  /** A public repository is visible to all. */
  findVisible(caller: Caller, owner: string, path: string): Promise<Repository>;
  /** Finds a repository for callers that prove themselves otherwise, like a bridge or an operator on the command line. */
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
 * The owner who is the caller: the check of the token has just read that account. The login of an application that acts
 * for itself is its client id, which is no account.
 */
function findOwnAccount(caller: Caller | undefined, login: string): Pick<Owner, 'kind' | 'id' | 'login'> | undefined {
  if (caller?.login !== login || caller.userId === caller.clientId) return undefined;
  return { kind: 'user', id: caller.userId, login };
}

/** Decided before anything is looked up, so that the answer tells nothing of other repositories. */
function checkLimit({ repositories }: Caller, owner: string, path: string): void {
  if (repositories !== undefined && !repositories.includes(`${owner}/${path}`.toLowerCase()))
    throw refuseLimited(repositories);
}

/** Throws if the token is limited to repositories: the operation concerns no single one. */
export function checkUnlimited({ repositories }: Pick<Identity, 'repositories'>): void {
  if (repositories !== undefined) throw refuseLimited(repositories);
}

function refuseLimited(repositories: readonly string[]): Failure {
  return new Failure('forbidden', `Forbidden: the token is limited to ${repositories.join(', ')}`);
}

/** Throws 404 for a write that belongs to a repository which was deleted after it was found. */
export async function refuseDeleted<T>({ ownerLogin, path }: Repository, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    throw isOrphan(error) ? refuseUnknown(ownerLogin, path) : error;
  }
}

/** The error code is spelt as GitCode spells it. */
export function refuseUnknown(owner: string, path: string): Failure {
  return new Failure('not_found', `Project not found:${owner}/${path}`, { errorCodeName: 'UN_KNOW' });
}
