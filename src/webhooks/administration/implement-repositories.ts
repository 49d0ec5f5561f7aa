/** Implements the operations on repositories of all owners, and publishes events for them. */
import { Failure } from '../../errors.ts';
import type { Owner } from '../../identity.ts';
import {
  type Actor,
  type Implementation,
  implement,
  type OperationContext,
  type OutputOf,
} from '../../operations/operation.ts';
import type { Event } from '../events/event.ts';
import type { EventKind } from '../events/event-kind.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { deleteRepository } from '../management/delete-repository.ts';
import type { Management } from '../management/management.ts';
import { publishEvent } from '../management/publish-event.ts';
import { listAllRepositories } from '../repositories/all-repositories-store.ts';
import { createRepository } from '../repositories/create-repository.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';
import { toRepositoryJson } from '../repositories/repository-json.ts';
import {
  addRepository,
  listRepositories,
  publishAnyEvent,
  removeRepository,
  showRepository,
} from './repository-operations.ts';

export function implementRepositories(management: Management): Implementation[] {
  const { access, baseUrl } = management;
  return [
    implement(listRepositories, (input) => listPage(management, input)),
    implement(addRepository, async ({ owner: login, ...parameters }, { actor }) => {
      const owner = await findOwner(management, login, 'create the repository');
      return toRepositoryJson(await createRepository(management, { owner, actor }, parameters), baseUrl);
    }),
    implement(showRepository, async ({ owner, name }) => toRepositoryJson(await access.find(owner, name), baseUrl)),
    implement(removeRepository, async ({ owner, name }, { actor }) => {
      const repository = await access.find(owner, name);
      await deleteRepository(management, repository, actor);
      return { id: repository.id, full_name: fullNameOf(repository) };
    }),
    implement(
      publishAnyEvent,
      (input, context) => publish(management, context, input),
      async ({ path: { owner = '', name = '' }, actor, bodyBytes }) =>
        management.intake.checkRoom(await findPublished(management, actor, { owner, name }), bodyBytes),
    ),
  ];
}

interface RepositoriesPage {
  readonly owner?: string | undefined;
  readonly after: number;
  readonly limit: number;
}

async function listPage(management: Management, { owner: login, after, limit }: RepositoriesPage) {
  const owner = login === undefined ? undefined : await findOwner(management, login, 'list the repositories');
  const found = await listAllRepositories(management.store, {
    afterId: after,
    ownerId: owner?.id,
    limit: limit + 1,
  });
  const repositories = found.slice(0, limit).map((repository) => toRepositoryJson(repository, management.baseUrl));
  return { repositories, next: found.length > limit ? (repositories.at(-1)?.id ?? null) : null };
}

async function findOwner({ owners }: Management, login: string, action: string): Promise<Owner> {
  const owner = await owners.findOwner(login);
  if (owner !== undefined) return owner;
  throw new Failure('not_found', `Cannot ${action}: there is no person or organization "${login}"`);
}

interface Publication {
  readonly owner: string;
  readonly name: string;
  readonly event?: Event | undefined;
  readonly sample?: string | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** A person who administers the repository may publish its events, not only administrators of the service. */
async function publish(
  management: Management,
  { actor, releaseBody }: OperationContext,
  { owner, name, event, sample, idempotencyKey }: Publication,
): Promise<OutputOf<typeof publishAnyEvent>> {
  const repository = await findPublished(management, actor, { owner, name });
  if ((event === undefined) === (sample === undefined))
    throw new Failure('invalid', 'Cannot publish the event: give either an event or the kind of a sample');
  const published = event ?? createSample(management, repository, sample as EventKind);
  const source = actor.userId === undefined ? 'cli' : 'api';
  // The intake limits the events that wait, and a slow commit must not use up the memory budget for bodies of other routes.
  releaseBody?.();
  const receipt = await publishEvent(management, { repository, event: published, source, idempotencyKey });
  return { ...receipt, deliveries: [...receipt.deliveries] };
}

function findPublished(
  { access }: Management,
  { userId, isAdmin, repositories }: Actor,
  { owner, name }: { readonly owner: string; readonly name: string },
): Promise<Repository> {
  if (userId === undefined) return access.find(owner, name);
  return access.findAdministered({ userId, isAdmin, repositories }, owner, name);
}

function createSample({ world }: Management, { ownerLogin, defaultBranch }: Repository, kind: EventKind): Event {
  return createSampleEvent(kind, { username: ownerLogin, name: ownerLogin }, defaultBranch, world.nowMs());
}
