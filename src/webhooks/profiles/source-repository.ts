/** Finds the repository that a merge request comes from, such as a fork. */
import type { MergeRequest } from '../events/event.ts';
import type { Repository } from '../repositories/repository.ts';

/** The repository that a merge request comes from: the target itself unless the event names another, such as a fork. */
export function sourceRepositoryOf(request: MergeRequest, repository: Repository): Repository {
  const source = request.source_repository;
  if (source === undefined) return repository;
  return {
    ...repository,
    id: source.id,
    ownerLogin: source.owner,
    path: source.name,
    name: source.name,
    webUrl: source.web_url,
    httpUrl: source.http_url,
    sshUrl: source.ssh_url,
  };
}
