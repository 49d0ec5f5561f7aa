/** Renders users, repositories, commits and pull requests for GitHub's bodies. */
import type { Commit, EventOf, Issue, MergeRequest, Person } from '../events/event.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';

export function renderUser(person: Person, repository: Repository): object {
  const login = person.username || person.name;
  return {
    login,
    id: person.id,
    avatar_url: person.avatar_url,
    html_url: `${originOf(repository)}/${encodeURIComponent(login)}`,
    type: 'User',
    site_admin: false,
  };
}

export function renderPusher(person: Person): object {
  return { name: person.username || person.name, email: person.email };
}

export function renderRepository(repository: Repository): object {
  return {
    id: repository.id,
    name: repository.path,
    full_name: fullNameOf(repository),
    private: repository.isPrivate,
    owner: {
      login: repository.ownerLogin,
      name: repository.ownerLogin,
      type: repository.ownerKind === 'user' ? 'User' : 'Organization',
    },
    html_url: repository.webUrl,
    url: repository.webUrl,
    description: repository.description,
    fork: false,
    git_url: repository.httpUrl,
    ssh_url: repository.sshUrl,
    clone_url: repository.httpUrl,
    homepage: repository.webUrl,
    default_branch: repository.defaultBranch,
    visibility: repository.isPrivate ? 'private' : 'public',
  };
}

export function renderCommit(commit: Commit, repository: Repository): object {
  const committer = commit.committer ?? commit.author;
  return {
    id: commit.id,
    tree_id: commit.tree ?? null,
    distinct: true,
    message: commit.message.replace(/\n$/, ''),
    timestamp: commit.timestamp,
    url: commit.url ?? `${repository.webUrl}/commit/${commit.id}`,
    author: commit.author,
    committer,
    added: commit.added,
    removed: commit.removed,
    modified: commit.modified,
  };
}

/** Makes optional keys required, with `undefined` for an absent one. */
type Loose<T> = { readonly [K in keyof T]: T[K] | (undefined extends T[K] ? undefined : never) };

export function renderIssue(issue: Loose<Issue>, repository: Repository): object {
  return {
    id: issue.id ?? issue.number,
    number: issue.number,
    title: issue.title,
    body: issue.description,
    state: issue.state === 'opened' ? 'open' : 'closed',
    user: renderUser(issue.author, repository),
    assignees: issue.assignees.map((person) => renderUser(person, repository)),
    labels: issue.labels.map((label) => ({ id: label.id, name: label.title, color: label.color.replace('#', '') })),
    html_url: issue.url ?? `${repository.webUrl}/issues/${issue.number}`,
    created_at: issue.created_at,
    updated_at: issue.updated_at ?? issue.created_at,
    closed_at: issue.closed_at,
  };
}

export function renderPullRequest(request: MergeRequest, repository: Repository): object {
  const url = request.url ?? `${repository.webUrl}/merge_requests/${request.number}`;
  const source = request.source_repository;
  return {
    id: request.id ?? request.number,
    number: request.number,
    title: request.title,
    body: request.description,
    state: request.state === 'opened' ? 'open' : 'closed',
    draft: request.draft,
    merged: request.state === 'merged',
    mergeable: request.merge_status === 'unchecked' ? null : request.merge_status === 'can_be_merged',
    merge_commit_sha: request.merge_commit,
    user: renderUser(request.author, repository),
    assignees: request.assignees.map((person) => renderUser(person, repository)),
    requested_reviewers: request.reviewers.map((person) => renderUser(person, repository)),
    html_url: url,
    url,
    created_at: request.created_at,
    updated_at: request.updated_at ?? request.created_at,
    head: {
      ref: request.source_branch,
      sha: request.last_commit?.id ?? null,
      label: `${source?.owner ?? repository.ownerLogin}:${request.source_branch}`,
      repo: source
        ? { id: source.id, name: source.name, full_name: `${source.owner}/${source.name}`, html_url: source.web_url }
        : renderRepository(repository),
    },
    base: {
      ref: request.target_branch,
      sha: request.target_commit?.id ?? null,
      label: `${repository.ownerLogin}:${request.target_branch}`,
      repo: renderRepository(repository),
    },
  };
}

export function renderComment(event: EventOf<'note'>, repository: Repository): object {
  const { note } = event;
  return {
    id: note.id,
    body: note.body,
    user: renderUser(event.actor, repository),
    html_url: note.url ?? `${repository.webUrl}#note_${note.id}`,
    created_at: note.created_at,
    updated_at: note.updated_at ?? note.created_at,
  };
}

function originOf(repository: Repository): string {
  return repository.webUrl.split('/').slice(0, 3).join('/');
}
