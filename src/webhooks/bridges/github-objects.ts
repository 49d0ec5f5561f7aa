/** Translates the objects in GitHub's payloads: people, commits, issues, pull requests. */
import type { EventInput } from '../events/event.ts';
import { compact, type Json, toTime } from './bridge.ts';

type InputOf<Kind extends EventInput['kind']> = Extract<EventInput, { kind: Kind }>;

export function toPerson(user: Json): InputOf<'push'>['actor'] {
  return compact({
    id: user?.id,
    username: user?.login ?? user?.username,
    name: user?.full_name || user?.name || user?.login || user?.username,
    email: user?.email,
    avatar_url: user?.avatar_url,
  });
}

export function toCommit(commit: Json) {
  return compact({
    id: commit.id,
    message: commit.message,
    timestamp: toTime(commit.timestamp) ?? '',
    url: commit.url,
    author: { name: commit.author?.name ?? '', email: commit.author?.email ?? '' },
    committer: commit.committer && { name: commit.committer.name ?? '', email: commit.committer.email ?? '' },
    tree: commit.tree_id,
    added: commit.added,
    modified: commit.modified,
    removed: commit.removed,
  });
}

export function toIssue(issue: Json): InputOf<'issue'>['issue'] {
  return compact({
    id: issue?.id,
    number: issue?.number,
    title: issue?.title,
    description: issue?.body,
    state: issue?.state === 'closed' ? ('closed' as const) : ('opened' as const),
    author: toPerson(issue?.user),
    assignees: (issue?.assignees ?? []).map(toPerson),
    labels: (issue?.labels ?? []).map(toLabel),
    due_date: issue?.due_date,
    created_at: toTime(issue?.created_at) ?? '',
    updated_at: toTime(issue?.updated_at),
    closed_at: toTime(issue?.closed_at),
    url: issue?.html_url,
  });
}

function toLabel(label: Json) {
  return compact({ id: label.id, title: label.name, color: label.color && `#${label.color.replace(/^#/, '')}` });
}

export function toMergeRequest(request: Json): InputOf<'merge_request'>['merge_request'] {
  const source = request?.head?.repo;
  const isFork = source && source.id !== request.base?.repo?.id;
  return compact({
    id: request?.id,
    number: request?.number,
    title: request?.title,
    description: request?.body,
    state: toRequestState(request),
    draft: request?.draft,
    source_branch: request?.head?.ref,
    target_branch: request?.base?.ref,
    source_repository: isFork ? toSourceRepository(source) : undefined,
    last_commit: toHead(request?.head?.sha, request),
    target_commit: toHead(request?.base?.sha, request),
    merge_commit: request?.merge_commit_sha,
    merge_status: toMergeStatus(request?.mergeable),
    author: toPerson(request?.user),
    assignees: (request?.assignees ?? []).map(toPerson),
    reviewers: (request?.requested_reviewers ?? []).map(toPerson),
    labels: (request?.labels ?? []).map(toLabel),
    created_at: toTime(request?.created_at) ?? '',
    updated_at: toTime(request?.updated_at),
    url: request?.html_url,
  });
}

function toMergeStatus(mergeable: boolean | null | undefined) {
  if (mergeable === undefined || mergeable === null) return undefined;
  return mergeable ? ('can_be_merged' as const) : ('cannot_be_merged' as const);
}

function toRequestState(request: Json): 'opened' | 'merged' | 'closed' {
  if (request?.merged === true || request?.pull_request?.merged_at) return 'merged';
  return request?.state === 'closed' ? 'closed' : 'opened';
}

/** The payload has only the id of the head commit. */
function toHead(id: string | undefined, request: Json) {
  if (!id) return undefined;
  return { id, timestamp: toTime(request.updated_at) ?? toTime(request.created_at) ?? '', author: {} };
}

function toSourceRepository(repository: Json) {
  return compact({
    id: repository.id,
    owner: repository.owner?.login ?? repository.owner?.username ?? '',
    name: repository.name,
    web_url: repository.html_url,
    http_url: repository.clone_url,
    ssh_url: repository.ssh_url,
  });
}
