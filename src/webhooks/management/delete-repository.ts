import type { Actor } from '../../operations/operation.ts';
import { cancelEndpointStatement } from '../delivery/queue/delivery-store.ts';
import type { Repository } from '../repositories/repository.ts';
import type { Management } from './management.ts';
import { recordRepositoryChange } from './record-change.ts';

/** With its webhooks; what was pending is canceled. */
export async function deleteRepository(dependencies: Management, repository: Repository, actor: Actor): Promise<void> {
  const nowMs = dependencies.world.nowMs();
  await dependencies.repositories.remove(repository.id, {
    ofHook: (hookId) => [cancelEndpointStatement(hookId, nowMs)],
    statements: [recordRepositoryChange(dependencies, 'repository_deleted', { repository, actor, nowMs })],
  });
}
