/** Translates GitHub's payloads, which Gitea and Forgejo follow with small differences. */
import type { EventInput } from '../events/event.ts';
import { MAX_LISTED_COMMITS } from '../events/event-limits.ts';
import { compact, type Json, toTime } from './bridge.ts';
import { toCommit, toIssue, toMergeRequest, toPerson } from './github-objects.ts';

type InputOf<Kind extends EventInput['kind']> = Extract<EventInput, { kind: Kind }>;

export function translateGithubShape(name: string, payload: Json): EventInput | undefined {
  switch (name) {
    case 'push':
      return translatePush(payload);
    case 'issues':
      return translateIssue(payload);
    case 'pull_request':
      return translatePullRequest(payload);
    case 'issue_comment':
    case 'pull_request_comment':
    case 'pull_request_review_comment':
    case 'commit_comment':
      return payload.action === 'created' ? translateComment(payload) : undefined;
    default:
      return undefined;
  }
}

function translatePush(payload: Json): EventInput | undefined {
  const shared = {
    before: payload.before,
    after: payload.after,
    base_ref: payload.base_ref?.replace(/^refs\/heads\//, '') ?? null,
    // Some hosts list thousands of commits; a delivery lists the newest 20.
    commits: (payload.commits ?? []).slice(-MAX_LISTED_COMMITS).map(toCommit),
    total_commits: payload.total_commits ?? payload.commits?.length ?? 0,
    actor: toPerson(payload.sender ?? payload.pusher),
  };
  if (payload.ref?.startsWith('refs/tags/'))
    return compact({ kind: 'tag_push' as const, ref: payload.ref, checkout: payload.head_commit?.id, ...shared });
  if (!payload.ref?.startsWith('refs/heads/')) return undefined;
  return { kind: 'push', ref: payload.ref, forced: payload.forced ?? false, ...shared };
}

const ACTION_OF: ReadonlyMap<unknown, InputOf<'issue'>['action']> = new Map([
  ['opened', 'open'],
  ['closed', 'close'],
  ['reopened', 'reopen'],
]);

function translateIssue(payload: Json): InputOf<'issue'> {
  return {
    kind: 'issue',
    action: ACTION_OF.get(payload.action) ?? 'update',
    actor: toPerson(payload.sender),
    issue: toIssue(payload.issue),
    changes: toChanges(payload.changes, payload.issue),
  };
}

function translatePullRequest(payload: Json): InputOf<'merge_request'> {
  const isMerged = payload.action === 'closed' && payload.pull_request?.merged === true;
  const hasNewCommits = payload.action === 'synchronize' || payload.action === 'synchronized';
  return compact({
    kind: 'merge_request' as const,
    action: isMerged ? ('merge' as const) : (ACTION_OF.get(payload.action) ?? 'update'),
    actor: toPerson(payload.sender),
    merge_request: toMergeRequest(payload.pull_request),
    previous_head: hasNewCommits ? payload.before : undefined,
    changes: toChanges(payload.changes, payload.pull_request),
  });
}

function translateComment(payload: Json): InputOf<'note'> {
  const { comment } = payload;
  return {
    kind: 'note',
    actor: toPerson(payload.sender ?? comment?.user),
    note: compact({
      id: comment?.id,
      body: comment?.body ?? '',
      created_at: toTime(comment?.created_at) ?? '',
      updated_at: toTime(comment?.updated_at),
      url: comment?.html_url,
    }),
    target: toTarget(payload),
  };
}

function toTarget(payload: Json): InputOf<'note'>['target'] {
  if (payload.pull_request) return { type: 'merge_request', merge_request: toMergeRequest(payload.pull_request) };
  // On these hosts a pull request is an issue too, and the payload of a comment on it names no branches.
  if (payload.issue?.pull_request) return { type: 'merge_request', merge_request: toMergeRequest(payload.issue) };
  if (payload.issue) return { type: 'issue', issue: toIssue(payload.issue) };
  const { comment } = payload;
  return {
    type: 'commit',
    commit: { id: comment?.commit_id, timestamp: toTime(comment?.created_at) ?? '', author: {} },
  };
}

/** GitHub sends the old value (`from`); the new value is in the subject. */
function toChanges(changes: Json, subject: Json) {
  return Object.fromEntries(
    Object.entries((changes ?? {}) as Record<string, Json>)
      .filter(([, change]) => change?.from !== undefined)
      .map(([field, change]) => [
        field === 'body' ? 'description' : field,
        { previous: change.from, current: subject?.[field] },
      ]),
  );
}
