/** Renders projects, people, commits and changes for GitCode's bodies. */
import type { Commit, Person } from '../events/event.ts';
import { toUtcSeconds } from '../parameters/json-body.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';

export function renderProject(repository: Repository): object {
  return {
    id: repository.id,
    name: repository.name,
    description: repository.description,
    web_url: repository.webUrl,
    avatar_url: '',
    git_ssh_url: repository.sshUrl,
    git_http_url: repository.httpUrl,
    namespace: repository.ownerLogin,
    visibility_level: visibilityOf(repository),
    path_with_namespace: fullNameOf(repository),
    default_branch: repository.defaultBranch,
    ci_config_path: null,
    homepage: repository.webUrl,
    url: repository.sshUrl,
    ssh_url: repository.sshUrl,
    http_url: repository.httpUrl,
  };
}

/** Renders the shorter form of a project, for the key `repository`. */
export function renderBasicProject(repository: Repository): object {
  return {
    name: repository.name,
    url: repository.sshUrl,
    description: repository.description,
    homepage: repository.webUrl,
    git_http_url: repository.httpUrl,
    git_ssh_url: repository.sshUrl,
    visibility_level: visibilityOf(repository),
  };
}

function visibilityOf(repository: Repository): number {
  return repository.isPrivate ? 0 : 20;
}

export function renderPerson(person: Person): object {
  return {
    id: person.id,
    name: person.name,
    username: person.username,
    avatar_url: person.avatar_url,
    email: person.email,
  };
}

export function renderCommit(commit: Commit, repository: Repository): object {
  return {
    id: commit.id,
    message: commit.message,
    timestamp: toUtcSeconds(commit.timestamp),
    url: commit.url ?? `${repository.webUrl}/commits/detail/${commit.id}`,
    author: { name: commit.author.name, email: commit.author.email },
  };
}

type Changes = Record<string, { readonly previous?: unknown; readonly current?: unknown }>;

/** `current` and `previous` of every changed field; for a creation all fields, with nothing before. */
export function renderChanges(given: Changes, created: Record<string, unknown> | undefined): object {
  const all: Changes = {
    ...Object.fromEntries(Object.entries(created ?? {}).map(([name, current]) => [name, { current }])),
    ...given,
  };
  return Object.fromEntries(
    Object.entries(all).map(([name, change]) => [
      name,
      { current: change.current ?? null, previous: change.previous ?? null },
    ]),
  );
}
