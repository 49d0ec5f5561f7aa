/** Renders deliveries as GitCode sends them: its own headers, bodies like GitLab's, and a signature like GitHub's. */
import type { Event, ReferenceEvent } from '../events/event.ts';
import { countCommits, isZeroSha, listCommits, shortRef } from '../events/event.ts';
import type { EventKind } from '../events/event-kind.ts';
import { toBytes } from '../parameters/json-body.ts';
import { renderIssue } from './gitcode-issue.ts';
import { renderMergeRequest } from './gitcode-merge-request.ts';
import { renderNote } from './gitcode-note.ts';
import { renderBasicProject, renderCommit, renderProject } from './gitcode-shared.ts';
import type { Attempt, Profile, RenderContext } from './profile.ts';
import { signBody, standardHeaders } from './signature.ts';

/** The names of events in headers, which GitLab, GitCode and Gitee share. */
export const EVENT_HEADER_OF: Record<EventKind, string> = {
  push: 'Push Hook',
  tag_push: 'Tag Push Hook',
  issue: 'Issue Hook',
  note: 'Note Hook',
  merge_request: 'Merge Request Hook',
};

export const gitcode: Profile = {
  sendsPassword: true,
  render: (event, context) => toBytes(renderBody(event, context)),
  headers: (attempt) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'git-gitcode-hook',
    'X-GitCode-Event': EVENT_HEADER_OF[attempt.eventKind],
    'X-GitCode-Delivery': attempt.deliveryUuid,
    ...authenticate(attempt),
    ...standardHeaders(attempt),
  }),
};

function authenticate({ encryptionType, secrets, body }: Attempt): Record<string, string> {
  if (secrets.current === null) return {};
  if (encryptionType === 0) return { 'X-GitCode-Token': secrets.current.toString('latin1') };
  return { 'X-GitCode-Signature-256': signBody(secrets.current, body) };
}

function renderBody(event: Event, context: RenderContext): object {
  switch (event.kind) {
    case 'push':
    case 'tag_push':
      return renderReference(event, context);
    case 'issue':
      return renderIssue(event, context);
    case 'merge_request':
      return renderMergeRequest(event, context);
    case 'note':
      return renderNote(event, context);
  }
}

function renderReference(event: ReferenceEvent, context: RenderContext): object {
  const { repository, hookId, deliveryUuid } = context;
  return {
    object_kind: event.kind,
    event_name: event.kind,
    before: event.before,
    after: event.after,
    ref: event.ref,
    base_ref: event.base_ref,
    checkout_sha: findCheckout(event),
    message: event.message,
    user_id: event.actor.id,
    user_name: event.actor.name,
    user_username: event.actor.username,
    user_email: event.actor.email,
    user_avatar: event.actor.avatar_url,
    project_id: repository.id,
    project: renderProject(repository),
    commits: listCommits(event).map((commit) => ({
      ...renderCommit(commit, repository),
      added: commit.added,
      removed: commit.removed,
      modified: commit.modified,
      cooperate_authors: commit.co_authors,
    })),
    total_commits_count: countCommits(event),
    push_options: event.push_options,
    repository: renderBasicProject(repository),
    git_branch: shortRef(event.ref),
    git_commit_no: event.after,
    manual_build: false,
    extend_attributes: null,
    uuid: deliveryUuid,
    hook_id: hookId,
    hook_type: 'project',
  };
}

/** The commit to check out; null if the reference was deleted. */
export function findCheckout(event: ReferenceEvent): string | null {
  if (isZeroSha(event.after)) return null;
  return event.kind === 'tag_push' ? (event.checkout ?? event.after) : event.after;
}
