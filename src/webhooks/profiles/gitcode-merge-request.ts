/** Renders a merge request event in GitCode's body. */
import type { EventOf, MergeRequest } from '../events/event.ts';
import { randomHexOf, withOffset } from '../parameters/json-body.ts';
import type { Repository } from '../repositories/repository.ts';
import { renderLabels } from './gitcode-issue.ts';
import { renderBasicProject, renderChanges, renderCommit, renderPerson, renderProject } from './gitcode-shared.ts';
import type { RenderContext } from './profile.ts';
import { sourceRepositoryOf } from './source-repository.ts';

export function renderMergeRequest(
  event: EventOf<'merge_request'>,
  { repository, deliveryUuid }: RenderContext,
): object {
  const request = event.merge_request;
  const attributes = {
    ...renderMergeRequestFields(request, repository),
    action: event.action,
    act: event.action,
    act_desc: event.action,
    oldrev: event.previous_head ?? '',
    update_reason: event.previous_head === undefined ? '' : 'source update',
    need_approve: false,
    tester_list: [],
    approver_list: [],
  };
  // Branch and commit stay empty until there is something to build: new commits, or the merge.
  const isBuildable = event.previous_head !== undefined || event.action === 'merge';
  return {
    enterprise_labels: [],
    changes: renderChanges(event.changes, event.action === 'open' ? listCreatedFields(request, repository) : undefined),
    project: renderProject(repository),
    git_commit_no: isBuildable ? (request.last_commit?.id ?? '') : '',
    virtual_merge_build: false,
    git_branch: isBuildable ? request.source_branch : '',
    repository: renderBasicProject(repository),
    issues: [],
    object_kind: 'merge_request',
    labels: renderLabels(request, repository),
    produce_random_id: randomHexOf(deliveryUuid),
    extend_attributes: null,
    event_type: 'merge_request',
    object_attributes: attributes,
    merge_request: attributes,
    git_target_branch_commit_no: request.target_commit?.id ?? '',
    user: renderPerson(event.actor),
    manual_build: false,
    uuid: `${request.number}_${deliveryUuid}`,
  };
}

/** Renders a merge request within the body of a comment. */
export function renderNotedMergeRequest(request: MergeRequest, repository: Repository): object {
  return { ...renderMergeRequestFields(request, repository), action: 'open' };
}

function renderMergeRequestFields(request: MergeRequest, repository: Repository): object {
  return {
    id: request.id ?? request.number,
    iid: request.number,
    title: request.title,
    description: request.description,
    state: request.state,
    url: request.url ?? `${repository.webUrl}/merge_requests/${request.number}`,
    created_at: withOffset(request.created_at),
    updated_at: withOffset(request.updated_at ?? request.created_at),
    source_branch: request.source_branch,
    target_branch: request.target_branch,
    source_project_id: request.source_repository?.id ?? repository.id,
    target_project_id: repository.id,
    source: renderProject(sourceRepositoryOf(request, repository)),
    target: renderProject(repository),
    last_commit: request.last_commit ? renderCommit(request.last_commit, repository) : null,
    target_branch_commit: request.target_commit ? renderCommit(request.target_commit, repository) : null,
    author: renderPerson(request.author),
    author_id: request.author.id,
    assignee_id: request.assignees[0]?.id ?? null,
    assignee_list: request.assignees.map(renderPerson),
    reviewer_list: request.reviewers.map(renderPerson),
    merge_status: request.merge_status,
    merge_commit_sha: request.merge_commit,
    merge_params: { force_remove_source_branch: false },
    merge_when_pipeline_succeeds: false,
    merge_error: null,
    merge_user_id: null,
    milestone_id: null,
    head_pipeline_id: null,
    omega_attributes: null,
    updated_by_id: null,
    last_edited_at: null,
    last_edited_by_id: null,
    work_in_progress: request.draft,
    conflict: request.merge_status === 'cannot_be_merged',
    need_review: false,
    need_test: false,
    time_estimate: null,
    total_time_spent: 0,
    human_time_estimate: null,
    human_total_time_spent: null,
  };
}

function listCreatedFields(request: MergeRequest, repository: Repository): Record<string, unknown> {
  return {
    merge_params: 'force_remove_source_branch: false\n',
    patchset_locked: false,
    merge_when_pipeline_succeeds: false,
    iid: request.number,
    target_branch: request.target_branch,
    created_at: withOffset(request.created_at),
    description: request.description,
    close_issue_when_merge: false,
    moderation_result: false,
    source_project_id: request.source_repository?.id ?? repository.id,
    title: request.title,
    current_patchset_id: 0,
    source_branch: request.source_branch,
    squash: false,
    updated_at: withOffset(request.updated_at ?? request.created_at),
    merge_status: request.merge_status,
    moderation_time: 0,
    latest_merge_request_diff_id: 0,
    id: request.id ?? request.number,
    state: request.state,
    author_id: request.author.id,
    target_project_id: repository.id,
  };
}
