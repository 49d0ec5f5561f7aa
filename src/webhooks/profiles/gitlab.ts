/**
 * Renders deliveries as GitLab sends them, with `X-Gitlab-Token`. The bodies are those of GitCode, with a `title` for commits and without
 * the fields that GitCode adds.
 */
import type { Event, EventOf, Person } from '../events/event.ts';
import { EVENT_HEADER_OF, gitcode } from './gitcode.ts';
import { renderBasicProject, renderPerson } from './gitcode-shared.ts';
import type { Attempt, Profile, RenderContext } from './profile.ts';
import { standardHeaders } from './signature.ts';

export const gitlab: Profile = {
  sendsPassword: true,
  render: (event, context) => Buffer.from(JSON.stringify(renderBody(event, context), nullIfEmptyAvatar)),
  headers: (attempt) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'GitLab/trivet',
    'X-Gitlab-Event': EVENT_HEADER_OF[attempt.eventKind],
    'X-Gitlab-Webhook-UUID': attempt.deliveryUuid,
    'X-Gitlab-Event-UUID': attempt.deliveryUuid,
    'Idempotency-Key': attempt.deliveryUuid,
    ...authenticate(attempt),
    ...standardHeaders(attempt),
  }),
};

/** GitLab has a plain token, and since version 19 a Standard Webhooks signature, which every profile sends. */
function authenticate({ encryptionType, secrets }: Attempt): Record<string, string> {
  if (encryptionType === 1 || secrets.current === null) return {};
  return { 'X-Gitlab-Token': secrets.current.toString('latin1') };
}

interface RenderedCommit {
  readonly message: string;
}

/** GitCode adds these keys to GitLab's bodies. */
const ADDED_KEYS = new Set([
  'produce_random_id',
  'uuid',
  'manual_build',
  'virtual_merge_build',
  'git_branch',
  'git_commit_no',
  'git_target_branch_commit_no',
  'extend_attributes',
  'hook_id',
  'hook_type',
  'enterprise_labels',
  'issues',
]);

function renderBody(event: Event, context: RenderContext): object {
  const text = Buffer.from(gitcode.render(event, context)).toString('utf8');
  const body = JSON.parse(text) as Record<string, unknown>;
  const kept = withoutKeys(body, ADDED_KEYS);
  switch (event.kind) {
    case 'push':
    case 'tag_push':
      return { ...kept, message: event.message || null, commits: (kept.commits as RenderedCommit[]).map(addTitle) };
    case 'merge_request':
      return renderMergeRequest(event, kept);
    case 'issue':
      return renderIssue(event, kept, context);
    case 'note':
      return renderNote(event, kept);
  }
}

function withoutKeys(body: object, keys: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.has(key)));
}

/** Where GitCode has an empty text or object, GitLab has null or no key, and receivers check for that. */
function nullIfEmptyAvatar(key: string, value: unknown): unknown {
  return (key === 'avatar_url' || key === 'user_avatar') && value === '' ? null : value;
}

function renderIssue(event: EventOf<'issue'>, kept: Record<string, unknown>, { repository }: RenderContext): object {
  const author = { author_id: event.issue.author.id, author: renderPerson(event.issue.author) };
  return {
    ...kept,
    object_attributes: { ...(kept.object_attributes as object), ...author },
    repository: renderBasicProject(repository),
    ...listPeople({ assignees: event.issue.assignees }),
  };
}

const NO_POSITION = { position: null, original_position: null, change_position: null };

function renderNote({ target }: EventOf<'note'>, kept: Record<string, unknown>): object {
  const noted = { ...kept, object_attributes: { ...(kept.object_attributes as object), ...NO_POSITION } };
  if (target.type !== 'issue') return noted;
  return { ...noted, issue: { ...(kept.issue as object), author: renderPerson(target.issue.author) } };
}

/** GitCode adds these attributes to those of a merge request. */
const ADDED_ATTRIBUTES = new Set(['update_reason', 'act', 'act_desc', 'need_approve', 'tester_list', 'approver_list']);

function renderMergeRequest(event: EventOf<'merge_request'>, kept: Record<string, unknown>): object {
  const { merge_request: _, object_attributes, ...rest } = kept;
  // `oldrev` means that there are new commits: receivers test for the key (Jenkins then builds).
  const absent = event.previous_head === undefined ? [...ADDED_ATTRIBUTES, 'oldrev'] : ADDED_ATTRIBUTES;
  return {
    ...rest,
    object_attributes: withoutKeys(object_attributes as object, new Set(absent)),
    ...listPeople({ assignees: event.merge_request.assignees, reviewers: event.merge_request.reviewers }),
  };
}

/** Lists people by role; GitLab leaves out a role without people. */
function listPeople(people: Readonly<Record<string, readonly Person[]>>): object {
  const named = Object.entries(people).filter(([, list]) => list.length > 0);
  return Object.fromEntries(named.map(([role, list]) => [role, list.map(renderPerson)]));
}

function addTitle(commit: RenderedCommit): object {
  const { cooperate_authors: _, ...rest } = commit as RenderedCommit & { cooperate_authors?: unknown };
  return { ...rest, title: commit.message.split('\n', 1)[0] };
}
