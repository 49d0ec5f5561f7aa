/** Translates the objects in GitLab's payloads: people, commits, issues, merge requests. */
import type { EventInput } from '../events/event.ts';
import { compact, type Json, toTime } from './bridge.ts';

type InputOf<Kind extends EventInput['kind']> = Extract<EventInput, { kind: Kind }>;

export function toPerson(user: Json): InputOf<'push'>['actor'] {
  return compact({
    id: user?.id,
    username: user?.username,
    name: user?.name,
    // GitLab writes [REDACTED] where an address is private.
    email: user?.email?.includes('@') ? user.email : undefined,
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
    added: commit.added,
    modified: commit.modified,
    removed: commit.removed,
  });
}

export function toIssue(attributes: Json, payload: Json): InputOf<'issue'>['issue'] {
  return compact({
    id: attributes?.id,
    number: attributes?.iid,
    title: attributes?.title,
    description: attributes?.description,
    state: attributes?.state === 'closed' ? ('closed' as const) : ('opened' as const),
    author: toAuthor(attributes, payload),
    assignees: (payload.assignees ?? []).map(toPerson),
    labels: toLabels(attributes?.labels ?? payload.labels),
    confidential: attributes?.confidential,
    due_date: attributes?.due_date,
    created_at: toTime(attributes?.created_at) ?? '',
    updated_at: toTime(attributes?.updated_at),
    closed_at: toTime(attributes?.closed_at),
    url: attributes?.url,
  });
}

const REQUEST_STATE_OF: ReadonlyMap<unknown, 'opened' | 'merged' | 'closed'> = new Map([
  ['opened', 'opened'],
  ['merged', 'merged'],
  ['closed', 'closed'],
  ['locked', 'closed'],
]);
const MERGE_STATUSES = new Set(['unchecked', 'can_be_merged', 'cannot_be_merged']);

export function toMergeRequest(attributes: Json, payload: Json): InputOf<'merge_request'>['merge_request'] {
  const isFork = attributes?.source_project_id !== attributes?.target_project_id;
  return compact({
    id: attributes?.id,
    number: attributes?.iid,
    title: attributes?.title,
    description: attributes?.description,
    state: REQUEST_STATE_OF.get(attributes?.state),
    draft: attributes?.draft ?? attributes?.work_in_progress,
    source_branch: attributes?.source_branch,
    target_branch: attributes?.target_branch,
    source_repository: isFork && attributes?.source ? toSource(attributes) : undefined,
    last_commit: attributes?.last_commit && toCommit(attributes.last_commit),
    merge_commit: attributes?.merge_commit_sha,
    merge_status: MERGE_STATUSES.has(attributes?.merge_status) ? attributes.merge_status : undefined,
    author: toAuthor(attributes, payload),
    assignees: (payload.assignees ?? []).map(toPerson),
    reviewers: (payload.reviewers ?? []).map(toPerson),
    labels: toLabels(payload.labels),
    created_at: toTime(attributes?.created_at) ?? '',
    updated_at: toTime(attributes?.updated_at),
    url: attributes?.url,
  });
}

/** The payload has only the number of the author, unless the author is the person who acts. */
function toAuthor(attributes: Json, payload: Json): InputOf<'push'>['actor'] {
  if (attributes?.author) return toPerson(attributes.author);
  const isActor = payload.user?.id !== undefined && payload.user.id === attributes?.author_id;
  return isActor ? toPerson(payload.user) : compact({ id: attributes?.author_id });
}

function toLabels(labels: Json) {
  return (labels ?? []).map((label: Json) => compact({ id: label.id, title: label.title, color: label.color }));
}

function toSource({ source, source_project_id }: Json) {
  const [owner = '', name = source.name] = String(source.path_with_namespace ?? '').split(/\/(?=[^/]*$)/);
  return compact({
    id: source_project_id,
    owner,
    name,
    web_url: source.web_url,
    http_url: source.git_http_url,
    ssh_url: source.git_ssh_url,
  });
}
