import type { Actor } from '../../operations/operation.ts';
import { cancelHookQueueStatement } from '../delivery/queue/delivery-store.ts';
import type { Repository } from '../repositories/repository.ts';
import { removeRepository } from '../repositories/repository-store.ts';
import type { Management } from './management.ts';
import { recordHookChange, recordRepositoryChange } from './record-change.ts';

/** Deletes a repository with its webhooks, and cancels their pending deliveries. */
export async function deleteRepository(dependencies: Management, repository: Repository, actor: Actor): Promise<void> {
  const nowMs = dependencies.world.nowMs();
  const change = { repository, actor, nowMs };
  await removeRepository(dependencies.store, repository.id, {
    ofHook: (id) => [
      cancelHookQueueStatement(id, nowMs),
      recordHookChange(dependencies, 'hook_deleted', { ...change, id }),
    ],
    statements: [recordRepositoryChange(dependencies, 'repository_deleted', change)],
  });
}
