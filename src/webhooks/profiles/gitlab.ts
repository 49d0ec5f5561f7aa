/** Deliveries as GitLab sends them. Its bodies are those of GitCode with `title` on commits and without a tail. */
import type { Event, Person } from '../event.ts';
import { EVENT_HEADER_OF, gitcode } from './gitcode.ts';
import { renderBasicProject, renderPerson } from './gitcode-shared.ts';
import { toBytes } from './json-body.ts';
import type { Attempt, Occasion, Profile } from './profile.ts';
import { standardHeaders } from './signature.ts';

export const gitlab: Profile = {
  render: (event, occasion) => toBytes(renderBody(event, occasion)),
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

/** GitLab has a token in clear, and since version 19 the signature of Standard Webhooks, which every profile sends. */
function authenticate({ encryptionType, secrets }: Attempt): Record<string, string> {
  if (encryptionType === 1 || secrets.current === null) return {};
  return { 'X-Gitlab-Token': secrets.current.toString('latin1') };
}

interface RenderedCommit {
  readonly message: string;
}

/** What GitCode adds to GitLab's bodies. */
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

function renderBody(event: Event, occasion: Occasion): object {
  const body = JSON.parse(Buffer.from(gitcode.render(event, occasion)).toString('utf8')) as Record<string, unknown>;
  const kept = Object.fromEntries(Object.entries(body).filter(([key]) => !ADDED_KEYS.has(key)));
  if (event.kind === 'merge_request') {
    delete kept.merge_request;
    return {
      ...kept,
      ...listPeople({ assignees: event.merge_request.assignees, reviewers: event.merge_request.reviewers }),
    };
  }
  if (event.kind === 'issue') {
    const repository = renderBasicProject(occasion.repository);
    return { ...kept, repository, ...listPeople({ assignees: event.issue.assignees }) };
  }
  if (!Array.isArray(kept.commits)) return kept;
  return { ...kept, commits: (kept.commits as RenderedCommit[]).map(addTitle) };
}

/** GitLab leaves out who is nobody. */
function listPeople(people: Readonly<Record<string, readonly Person[]>>): object {
  const named = Object.entries(people).filter(([, list]) => list.length > 0);
  return Object.fromEntries(named.map(([role, list]) => [role, list.map(renderPerson)]));
}

function addTitle(commit: RenderedCommit): object {
  const { cooperate_authors: _, ...rest } = commit as RenderedCommit & { cooperate_authors?: unknown };
  return { ...rest, title: commit.message.split('\n', 1)[0] };
}
