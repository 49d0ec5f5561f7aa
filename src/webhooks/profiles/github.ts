/** Renders deliveries as GitHub sends them: headers, bodies, `X-Hub-Signature-256`. */
import type { Event, EventOf, ReferenceEvent } from '../events/event.ts';
import { isZeroSha, listCommits, shortRef } from '../events/event.ts';
import { toBytes } from '../parameters/json-body.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';
import {
  renderComment,
  renderCommit,
  renderIssue,
  renderPullRequest,
  renderPusher,
  renderRepository,
  renderUser,
} from './github-shared.ts';
import type { Attempt, Profile, RenderContext } from './profile.ts';
import { signBody, standardHeaders } from './signature.ts';

export const github: Profile = {
  sendsPassword: false,
  render: (event, context) => toBytes(renderBody(event, context)),
  headers: (attempt) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/trivet',
    'X-GitHub-Event': nameEvent(attempt),
    'X-GitHub-Delivery': attempt.deliveryUuid,
    'X-GitHub-Hook-ID': String(attempt.hookId),
    ...authenticate(attempt),
    ...standardHeaders(attempt),
  }),
};

/** Signs whatever `encryption_type` is, since GitHub has no password mode. */
function authenticate({ secrets, body }: Attempt): Record<string, string> {
  if (secrets.current === null) return {};
  return {
    'X-Hub-Signature-256': signBody(secrets.current, body),
    'X-Hub-Signature': signBody(secrets.current, body, 'sha1'),
  };
}

function nameEvent({ eventKind, body }: Attempt): string {
  switch (eventKind) {
    case 'push':
    case 'tag_push':
      return 'push';
    case 'issue':
      return 'issues';
    case 'merge_request':
      return 'pull_request';
    case 'note':
      return isOnCommit(body) ? 'commit_comment' : 'issue_comment';
  }
}

/** Whether a comment is on a commit, which only its body shows. The event name depends on that. */
function isOnCommit(body: Uint8Array): boolean {
  return !('issue' in (JSON.parse(Buffer.from(body).toString('utf8')) as object));
}

function renderBody(event: Event, context: RenderContext): object {
  const tail = {
    repository: renderRepository(context.repository),
    sender: renderUser(event.actor, context.repository),
  };
  switch (event.kind) {
    case 'push':
    case 'tag_push':
      return { ...renderReference(event, context.repository), ...tail };
    case 'issue':
      return { action: ISSUE_ACTION_OF[event.action], issue: renderIssue(event.issue, context.repository), ...tail };
    case 'merge_request':
      return { ...renderMergeRequestEvent(event, context.repository), ...tail };
    case 'note':
      return { action: 'created', ...renderNote(event, context.repository), ...tail };
  }
}

const ISSUE_ACTION_OF = { open: 'opened', close: 'closed', reopen: 'reopened', update: 'edited' } as const;

function renderReference(event: ReferenceEvent, repository: Repository): object {
  const commits = listCommits(event).map((commit) => renderCommit(commit, repository));
  return {
    ref: event.ref,
    before: event.before,
    after: event.after,
    created: isZeroSha(event.before),
    deleted: isZeroSha(event.after),
    forced: event.kind === 'push' && event.forced,
    base_ref: event.base_ref === null ? null : `refs/heads/${event.base_ref}`,
    compare: compareUrl(event, repository),
    commits,
    head_commit: commits.at(-1) ?? null,
    pusher: renderPusher(event.actor),
  };
}

function compareUrl(event: ReferenceEvent, repository: Repository): string {
  if (isZeroSha(event.before)) return `${repository.webUrl}/compare/${shortRef(event.ref)}`;
  return `${repository.webUrl}/compare/${event.before.slice(0, 12)}...${event.after.slice(0, 12)}`;
}

function renderMergeRequestEvent(event: EventOf<'merge_request'>, repository: Repository): object {
  const changed = event.previous_head !== undefined && event.action === 'update';
  return {
    action: changed ? 'synchronize' : { ...ISSUE_ACTION_OF, merge: 'closed' }[event.action],
    number: event.merge_request.number,
    pull_request: renderPullRequest(event.merge_request, repository),
    ...(changed && { before: event.previous_head, after: event.merge_request.last_commit?.id }),
  };
}

function renderNote(event: EventOf<'note'>, repository: Repository): object {
  const { target } = event;
  const comment = renderComment(event, repository);
  switch (target.type) {
    case 'issue':
      return { issue: renderIssue(target.issue, repository), comment };
    case 'merge_request':
      return { issue: renderIssueOfRequest(target.merge_request, repository), comment };
    case 'commit':
      return { comment: { ...comment, commit_id: target.commit.id } };
  }
}

/** Renders a pull request within a comment as GitHub does: as an issue with a `pull_request`. */
function renderIssueOfRequest(
  request: EventOf<'merge_request'>['merge_request'],
  repository: Repository,
): Record<string, unknown> {
  const { number, title, description, author, assignees, labels, created_at } = request;
  const issue = renderIssue(
    {
      number,
      title,
      description,
      author,
      assignees,
      labels,
      created_at,
      updated_at: request.updated_at,
      id: request.id,
      state: request.state === 'opened' ? 'opened' : 'closed',
      confidential: false,
      due_date: null,
      closed_at: null,
      url: request.url ?? `${repository.webUrl}/merge_requests/${number}`,
    },
    repository,
  );
  const url = `${repository.webUrl}/merge_requests/${number}`;
  return { ...issue, pull_request: { url, html_url: url, full_name: fullNameOf(repository) } };
}
