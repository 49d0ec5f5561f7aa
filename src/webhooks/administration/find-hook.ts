/** Finds the repository or webhook that an operation names, for any owner. */
import { Failure } from '../../errors.ts';
import { findHookById, type StoredHook } from '../hooks/hook-store.ts';
import { findHook } from '../management/manage-hook.ts';
import type { Management } from '../management/management.ts';
import type { Repository } from '../repositories/repository.ts';
import { findRepositoryById } from '../repositories/repository-store.ts';

export interface FoundHook {
  readonly stored: StoredHook;
  readonly repository: Repository;
}

export interface HookReference {
  readonly id: number;
  /** `owner/name`: the webhook must be of this repository. */
  readonly repository?: string | undefined;
}

/** Throws `not_found`, also if the webhook is not of the repository that is named. */
export async function findAnyHook(management: Management, { id, repository: name }: HookReference): Promise<FoundHook> {
  if (name !== undefined) {
    const repository = await findNamed(management, name);
    return { repository, stored: await findHook(management, repository, id) };
  }
  const stored = await findHookById(management.store, id);
  if (stored === undefined) throw refuseUnknown(id);
  const repository = await findRepositoryById(management.store, stored.hook.repositoryId);
  // Another request may have deleted the repository with its webhooks meanwhile.
  if (repository === undefined) throw refuseUnknown(id);
  return { stored, repository };
}

/** Finds a repository by `owner/name`. */
export async function findNamed({ access }: Management, name: string): Promise<Repository> {
  const [owner = '', path = ''] = name.split('/');
  return await access.find(owner, path);
}

function refuseUnknown(id: number): Failure {
  return new Failure('not_found', `Cannot find the webhook ${id}`);
}
