/** Renders an issue event in GitCode's body. */
import type { EventOf, Issue, Person } from '../events/event.ts';
import { randomHexOf, withOffset } from '../parameters/json-body.ts';
import type { Repository } from '../repositories/repository.ts';
import { renderChanges, renderPerson, renderProject } from './gitcode-shared.ts';
import type { RenderContext } from './profile.ts';

/** The position that GitLab gives a new card on its board: the middle of the range. */
const RELATIVE_POSITION = 1073741823;

export function renderIssue(event: EventOf<'issue'>, { repository, deliveryUuid }: RenderContext): object {
  const { issue } = event;
  return {
    produce_random_id: randomHexOf(deliveryUuid),
    event_type: 'issue',
    object_attributes: {
      ...renderIssueFields(issue, repository),
      action: event.action,
      author: renderAuthor(issue.author),
      severity: null,
      stage: null,
      category: null,
      time_estimate: 0,
      human_time_estimate: 0,
      human_total_time_spent: 0,
    },
    changes: renderChanges(event.changes, event.action === 'open' ? listCreatedFields(issue, repository) : undefined),
    project: renderProject(repository),
    user: renderPerson(event.actor),
    manual_build: false,
    object_kind: 'issue',
    labels: renderLabels(issue, repository),
    extend_attributes: null,
    uuid: deliveryUuid,
  };
}

/** Renders an issue within the body of a comment. */
export function renderNotedIssue(issue: Issue, repository: Repository): object {
  return {
    ...renderIssueFields(issue, repository),
    author_id: issue.author.id,
    author: { ...renderPerson(issue.author), web_url: '' },
    time_estimate: null,
    human_time_estimate: null,
    human_total_time_spent: null,
  };
}

function renderIssueFields(issue: Issue, repository: Repository): object {
  return {
    id: issue.id ?? issue.number,
    iid: issue.number,
    project_id: repository.id,
    title: issue.title,
    description: issue.description,
    state: issue.state,
    created_at: withOffset(issue.created_at),
    updated_at: withOffset(issue.updated_at ?? issue.created_at),
    closed_at: issue.closed_at === null ? null : withOffset(issue.closed_at),
    due_date: issue.due_date,
    confidential: issue.confidential,
    assignee_id: issue.assignees[0]?.id ?? null,
    assignee_ids: issue.assignees.map((person) => person.id),
    milestone_id: null,
    moved_to_id: null,
    updated_by_id: null,
    last_edited_at: null,
    last_edited_by_id: null,
    relative_position: RELATIVE_POSITION,
    total_time_spent: 0,
    url: issue.url ?? `${repository.webUrl}/issues/${issue.number}`,
  };
}

/** Renders a person in the long form that only the author of an issue has. */
function renderAuthor(person: Person): object {
  return {
    id: person.id,
    name: person.name,
    username: person.username,
    iam_id: '',
    nick_name: person.name,
    state: 'active',
    avatar_url: person.avatar_url,
    avatar_path: null,
    email: person.email,
    name_cn: '',
    web_url: '',
    tenant_name: null,
    is_member: null,
  };
}

function listCreatedFields(issue: Issue, repository: Repository): Record<string, unknown> {
  return {
    iid: issue.number,
    created_at: withOffset(issue.created_at),
    description: issue.description,
    moderation_result: false,
    title: issue.title,
    updated_at: withOffset(issue.updated_at ?? issue.created_at),
    project_id: repository.id,
    moderation_time: 0,
    id: issue.id ?? issue.number,
    state: issue.state,
    author_id: issue.author.id,
    confidential: issue.confidential,
    relative_position: RELATIVE_POSITION,
  };
}

/** Renders labels in GitLab's format. */
export function renderLabels(labelled: Pick<Issue, 'labels' | 'created_at'>, repository: Repository): object[] {
  return labelled.labels.map((label) => ({
    id: label.id,
    title: label.title,
    color: label.color,
    project_id: repository.id,
    created_at: withOffset(labelled.created_at),
    updated_at: withOffset(labelled.created_at),
    template: false,
    description: '',
    type: 'ProjectLabel',
    group_id: null,
  }));
}
