/** Renders users, repositories, commits and issues for Gitee's bodies. */
import type { Commit, Issue, MergeRequest, Person } from '../events/event.ts';
import { toOffsetTime, withOffset } from '../parameters/json-body.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';
import { sourceRepositoryOf } from './source-repository.ts';

export function renderUser(person: Person, repository: Repository): object {
  const login = person.username || person.name;
  const url = `${originOf(repository)}/${encodeURIComponent(login)}`;
  return {
    id: person.id,
    login,
    name: person.name,
    username: login,
    user_name: login,
    email: person.email,
    avatar_url: person.avatar_url,
    html_url: url,
    url,
    remark: null,
    type: 'User',
    site_admin: false,
  };
}

export function renderPusher(person: Person, repository: Repository): object {
  const login = person.username || person.name;
  return {
    id: person.id,
    name: person.name,
    username: login,
    user_name: login,
    email: person.email,
    url: `${originOf(repository)}/${encodeURIComponent(login)}`,
  };
}

export function renderRepository(repository: Repository): object {
  const owner = { id: 0, username: repository.ownerLogin, name: repository.ownerLogin, email: '', avatar_url: '' };
  const updatedAt = toOffsetTime(repository.updatedAtMs);
  return {
    id: repository.id,
    name: repository.name,
    path: repository.path,
    full_name: fullNameOf(repository),
    path_with_namespace: fullNameOf(repository),
    name_with_namespace: `${repository.ownerLogin}/${repository.name}`,
    namespace: repository.ownerLogin,
    owner: renderUser(owner, repository),
    description: repository.description,
    private: repository.isPrivate,
    fork: false,
    html_url: repository.webUrl,
    url: repository.webUrl,
    homepage: repository.webUrl,
    clone_url: repository.httpUrl,
    git_http_url: repository.httpUrl,
    git_ssh_url: repository.sshUrl,
    ssh_url: repository.sshUrl,
    git_url: repository.httpUrl,
    git_svn_url: repository.httpUrl,
    svn_url: repository.httpUrl,
    default_branch: repository.defaultBranch,
    has_issues: true,
    has_wiki: true,
    has_pages: false,
    language: null,
    license: null,
    forks_count: 0,
    stargazers_count: 0,
    watchers_count: 0,
    open_issues_count: 0,
    created_at: toOffsetTime(repository.createdAtMs),
    updated_at: updatedAt,
    pushed_at: updatedAt,
  };
}

export function renderCommit(commit: Commit, repository: Repository): object {
  const time = withOffset(commit.timestamp);
  return {
    id: commit.id,
    tree_id: commit.tree ?? '',
    parent_ids: commit.parents,
    distinct: true,
    message: commit.message,
    timestamp: time,
    url: commit.url ?? `${repository.webUrl}/commit/${commit.id}`,
    author: renderAuthor(commit.author, time),
    committer: renderAuthor(commit.committer ?? commit.author, time),
    added: commit.added,
    removed: commit.removed,
    modified: commit.modified,
  };
}

function renderAuthor(author: Commit['author'], time: string): object {
  return {
    id: 0,
    name: author.name,
    username: author.name,
    user_name: author.name,
    email: author.email,
    url: '',
    remark: null,
    user: null,
    time,
  };
}

export interface RenderedIssue {
  readonly html_url: string;
  readonly assignee: object | null;
}

export function renderIssue(issue: Issue, repository: Repository): RenderedIssue {
  const [assignee] = issue.assignees;
  const closed = issue.state === 'closed';
  const rendered = {
    id: issue.id ?? issue.number,
    number: String(issue.number),
    title: issue.title,
    body: issue.description,
    state: closed ? 'closed' : 'open',
    state_name: closed ? '已完成' : '待办的',
    type_name: '任务',
    user: renderUser(issue.author, repository),
    assignee: assignee ? renderUser(assignee, repository) : null,
    collaborators: [],
    labels: issue.labels.map((label) => ({ id: label.id, name: label.title, color: label.color.replace('#', '') })),
    milestone: null,
    comments: 0,
    html_url: issue.url ?? `${repository.webUrl}/issues/${issue.number}`,
    created_at: withOffset(issue.created_at),
    updated_at: withOffset(issue.updated_at ?? issue.created_at),
  };
  return rendered;
}

export interface RenderedPullRequest {
  readonly html_url: string;
  readonly head: { readonly repo: object };
  readonly base: { readonly repo: object };
}

export function renderPullRequest(request: MergeRequest, repository: Repository): RenderedPullRequest {
  const url = request.url ?? `${repository.webUrl}/pulls/${request.number}`;
  const users = (people: readonly Person[]) => people.map((person) => renderUser(person, repository));
  const author = renderUser(request.author, repository);
  const updatedAt = withOffset(request.updated_at ?? request.created_at);
  const isClosed = request.state !== 'opened';
  const rendered = {
    id: request.id ?? request.number,
    number: request.number,
    title: request.title,
    body: request.description,
    state: request.state === 'opened' ? 'open' : request.state,
    html_url: url,
    diff_url: `${url}.diff`,
    patch_url: `${url}.patch`,
    user: author,
    updated_by: author,
    assignee: users(request.assignees)[0] ?? null,
    assignees: users(request.assignees),
    tester: null,
    testers: users(request.reviewers),
    labels: request.labels.map((label) => ({ id: label.id, name: label.title, color: label.color.replace('#', '') })),
    languages: [],
    milestone: null,
    head: renderBranch(request.source_branch, request.last_commit?.id ?? '', sourceRepositoryOf(request, repository)),
    base: renderBranch(request.target_branch, request.target_commit?.id ?? '', repository),
    merged: request.state === 'merged',
    mergeable: request.merge_status === 'can_be_merged',
    merge_status: request.merge_status,
    merge_commit_sha: request.merge_commit,
    merge_reference_name: `refs/pull/${request.number}/MERGE`,
    merged_at: request.state === 'merged' ? updatedAt : null,
    closed_at: isClosed ? updatedAt : null,
    need_review: request.reviewers.length > 0,
    need_test: false,
    additions: 0,
    deletions: 0,
    changed_files: 0,
    comments: 0,
    commits: 1,
    created_at: withOffset(request.created_at),
    updated_at: updatedAt,
  };
  return rendered;
}

function renderBranch(branch: string, id: string, repository: Repository): { repo: object } {
  const owner = { id: 0, username: repository.ownerLogin, name: repository.ownerLogin, email: '', avatar_url: '' };
  const rendered = {
    label: `${repository.ownerLogin}:${branch}`,
    ref: branch,
    sha: id,
    user: renderUser(owner, repository),
    repo: renderRepository(repository),
  };
  return rendered;
}

function originOf(repository: Repository): string {
  return repository.webUrl.split('/').slice(0, 3).join('/');
}
