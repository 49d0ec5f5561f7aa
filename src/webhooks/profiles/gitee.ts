/**
 * Renders deliveries as Gitee sends them, with a signature over the time in headers and body. The stored body has no `password`, `sign`
 * and `timestamp`; every attempt appends its own.
 */
import type { Event, EventOf, ReferenceEvent } from '../events/event.ts';
import { countCommits, isZeroSha, listCommits } from '../events/event.ts';
import type { EventKind } from '../events/event-kind.ts';
import { MAX_LISTED_COMMITS } from '../events/event-limits.ts';
import { toBytes, withOffset } from '../parameters/json-body.ts';
import type { Repository } from '../repositories/repository.ts';
import { EVENT_HEADER_OF } from './gitcode.ts';
import {
  renderCommit,
  renderIssue,
  renderPullRequest,
  renderPusher,
  renderRepository,
  renderUser,
} from './gitee-shared.ts';
import type { Attempt, Profile, RenderContext } from './profile.ts';
import { signTimestamp, standardHeaders } from './signature.ts';

const HOOK_NAME_OF: Record<EventKind, string> = {
  push: 'push_hooks',
  tag_push: 'tag_push_hooks',
  issue: 'issue_hooks',
  note: 'note_hooks',
  merge_request: 'merge_request_hooks',
};

export const gitee: Profile = {
  sendsPassword: true,
  render: (event, context) => toBytes(renderBody(event, context)),
  complete: (attempt) => appendProof(attempt),
  headers: (attempt) => {
    const { password, sign } = proveSender(attempt);
    const token = password || sign;
    return {
      'Content-Type': 'application/json',
      'User-Agent': 'git-oschina-hook',
      ...(token !== '' && { 'X-Gitee-Token': Buffer.from(token).toString('latin1') }),
      'X-Gitee-Timestamp': String(attempt.timestampMs),
      'X-Gitee-Event': EVENT_HEADER_OF[attempt.eventKind],
      'X-Git-Oschina-Event': EVENT_HEADER_OF[attempt.eventKind],
      'X-Gitee-Ping': 'false',
      'X-Request-ID': attempt.deliveryUuid.replaceAll('-', ''),
      ...standardHeaders(attempt),
    };
  },
};

function proveSender({ encryptionType, secrets, timestampMs }: Attempt): { password: string; sign: string } {
  if (secrets.current === null) return { password: '', sign: '' };
  if (encryptionType === 0) return { password: secrets.current.toString('utf8'), sign: '' };
  return { password: '', sign: signTimestamp(secrets.current, timestampMs) };
}

/** Inserts the three fields before the closing brace of the stored body, which is a JSON object. */
function appendProof(attempt: Attempt): Uint8Array {
  const proof = JSON.stringify({ ...proveSender(attempt), timestamp: String(attempt.timestampMs) });
  return Buffer.concat([attempt.body.subarray(0, -1), Buffer.from(`,${proof.slice(1)}`)]);
}

function renderBody(event: Event, context: RenderContext): object {
  const { repository, hookId } = context;
  const project = renderRepository(repository);
  return {
    hook_id: hookId,
    hook_name: HOOK_NAME_OF[event.kind],
    hook_url: `${repository.webUrl}/hooks/${hookId}/edit`,
    ...renderContent(event, repository),
    push_data: null,
    enterprise: null,
    project,
    repository: project,
    sender: renderUser(event.actor, repository),
  };
}

function renderContent(event: Event, repository: Repository): object {
  switch (event.kind) {
    case 'push':
    case 'tag_push':
      return renderReference(event, repository);
    case 'issue':
      return renderIssueEvent(event, repository);
    case 'merge_request':
      return renderMergeRequestEvent(event, repository);
    case 'note':
      return renderNoteEvent(event, repository);
  }
}

function renderReference(event: ReferenceEvent, repository: Repository): object {
  const commits = listCommits(event).map((commit) => renderCommit(commit, repository));
  const pusher = renderPusher(event.actor, repository);
  const isTag = event.kind === 'tag_push';
  return {
    ref: event.ref,
    before: event.before,
    after: event.after,
    created: isZeroSha(event.before),
    deleted: isZeroSha(event.after),
    compare: `${repository.webUrl}/compare/${event.before}...${event.after}`,
    commits: isTag ? null : commits,
    head_commit: isZeroSha(event.after) ? null : (commits.at(-1) ?? null),
    total_commits_count: isTag ? null : countCommits(event),
    commits_more_than_ten: isTag ? null : countCommits(event) > MAX_LISTED_COMMITS,
    user_id: event.actor.id,
    user_name: event.actor.name,
    user: pusher,
    pusher,
  };
}

const PLATFORM_STATE_OF = { opened: 'open', closed: 'closed', merged: 'merged' } as const;
const ISSUE_ACTION_OF = { open: 'open', close: 'state_change', reopen: 'state_change', update: 'update' } as const;

function renderIssueEvent(event: EventOf<'issue'>, repository: Repository): object {
  const { issue } = event;
  const rendered = renderIssue(issue, repository);
  return {
    action: ISSUE_ACTION_OF[event.action],
    issue: rendered,
    iid: String(issue.number),
    title: issue.title,
    description: issue.description,
    state: PLATFORM_STATE_OF[issue.state],
    milestone: null,
    url: rendered.html_url,
    assignee: rendered.assignee,
    user: renderUser(issue.author, repository),
    updated_by: renderUser(event.actor, repository),
    target_user: null,
  };
}

function renderMergeRequestEvent(event: EventOf<'merge_request'>, repository: Repository): object {
  const request = event.merge_request;
  const rendered = renderPullRequest(request, repository);
  const source = { project: rendered.head.repo, repository: rendered.head.repo };
  const target = { project: rendered.base.repo, repository: rendered.base.repo };
  return {
    action: event.action === 'reopen' ? 'open' : event.action,
    action_desc: event.previous_head === undefined ? event.action : 'source_branch_changed',
    pull_request: rendered,
    number: request.number,
    iid: request.number,
    title: request.title,
    body: request.description,
    state: PLATFORM_STATE_OF[request.state],
    merge_status: request.merge_status,
    merge_commit_sha: request.merge_commit,
    url: rendered.html_url,
    source_branch: request.source_branch,
    source_repo: source,
    target_branch: request.target_branch,
    target_repo: target,
    author: renderUser(request.author, repository),
    updated_by: renderUser(event.actor, repository),
    target_user: null,
    languages: [],
  };
}

function renderNoteEvent(event: EventOf<'note'>, repository: Repository): object {
  const { note, target } = event;
  const author = renderUser(event.actor, repository);
  const subject = describeSubject(target, repository);
  const url = note.url ?? `${subject.url}#note_${note.id}`;
  return {
    action: 'comment',
    comment: {
      id: note.id,
      body: note.body,
      user: author,
      created_at: withOffset(note.created_at),
      updated_at: withOffset(note.updated_at ?? note.created_at),
      html_url: url,
    },
    note: note.body,
    noteable_type: subject.type,
    noteable_id: subject.id,
    issue: target.type === 'issue' ? renderIssue(target.issue, repository) : null,
    pull_request: target.type === 'merge_request' ? renderPullRequest(target.merge_request, repository) : null,
    author,
    title: subject.title,
    per_iid: subject.perIid,
    short_commit_id: target.type === 'commit' ? target.commit.id.slice(0, 7) : null,
    url,
  };
}

interface Subject {
  readonly type: 'Issue' | 'PullRequest' | 'Commit';
  readonly id: number | null;
  readonly title: string;
  readonly perIid: string | null;
  readonly url: string;
}

function describeSubject(target: EventOf<'note'>['target'], repository: Repository): Subject {
  switch (target.type) {
    case 'issue': {
      const { id, number, title } = target.issue;
      const { html_url: url } = renderIssue(target.issue, repository);
      return { type: 'Issue', id: id ?? number, title, perIid: `#${number}`, url };
    }
    case 'merge_request': {
      const { id, number, title } = target.merge_request;
      const { html_url: url } = renderPullRequest(target.merge_request, repository);
      return { type: 'PullRequest', id: id ?? number, title, perIid: `!${number}`, url };
    }
    case 'commit': {
      const { id, message, url } = target.commit;
      const title = message.split('\n', 1)[0] ?? '';
      return { type: 'Commit', id: null, title, perIid: null, url: url ?? `${repository.webUrl}/commit/${id}` };
    }
  }
}
