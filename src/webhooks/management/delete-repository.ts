/**
 * Deletes a repository with its webhooks and events, and cancels their pending deliveries. Old events are deleted first, in separate
 * transactions. If that is interrupted, the repository still exists, and another deletion continues.
 */
import { createSweepPace } from '../../database/sweep.ts';
import type { Actor } from '../../operations/operation.ts';
import { cancelHookQueueStatement } from '../delivery/queue/delivery-store.ts';
import { deleteEventsOfRepository } from '../events/event-store.ts';
import type { Repository } from '../repositories/repository.ts';
import { removeRepository } from '../repositories/repository-store.ts';
import type { Management } from './management.ts';
import { recordHookChange, recordRepositoryChange } from './record-change.ts';

export async function deleteRepository(dependencies: Management, repository: Repository, actor: Actor): Promise<void> {
  const { store, world } = dependencies;
  await deleteEventsOfRepository(store, repository.id, createSweepPace(world));
  const nowMs = world.nowMs();
  const change = { repository, actor, nowMs };
  await removeRepository(store, repository.id, {
    ofHook: (id) => [
      cancelHookQueueStatement(id, nowMs),
      recordHookChange(dependencies, 'hook_deleted', { ...change, id }),
    ],
    statements: [recordRepositoryChange(dependencies, 'repository_deleted', change)],
  });
}
