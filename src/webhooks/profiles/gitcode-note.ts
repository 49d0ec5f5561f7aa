/** Renders a comment in GitCode's body. */
import { createHash } from 'node:crypto';
import type { EventOf } from '../events/event.ts';
import { asUuid, randomHexOf, withOffset } from '../parameters/json-body.ts';
import type { Repository } from '../repositories/repository.ts';
import { renderNotedIssue } from './gitcode-issue.ts';
import { renderNotedMergeRequest } from './gitcode-merge-request.ts';
import { renderBasicProject, renderCommit, renderPerson, renderProject } from './gitcode-shared.ts';
import type { RenderContext } from './profile.ts';

type NoteTarget = EventOf<'note'>['target'];

export function renderNote(event: EventOf<'note'>, { repository, deliveryUuid }: RenderContext): object {
  const { note, target } = event;
  const subject = describeSubject(target, repository);
  const discussionId = note.discussion_id ?? createHash('sha1').update(`note ${note.id}`).digest('hex');
  return {
    object_kind: 'note',
    event_type: 'note',
    user: renderPerson(event.actor),
    project_id: repository.id,
    project: renderProject(repository),
    object_attributes: {
      attachment: null,
      author_id: event.actor.id,
      change_position: {},
      commit_id: target.type === 'commit' ? target.commit.id : null,
      created_at: withOffset(note.created_at),
      discussion_id: discussionId,
      id: note.id,
      line_code: null,
      note: note.body,
      noteable_id: subject.id,
      noteable_type: subject.type,
      original_position: {},
      position: {},
      project_id: repository.id,
      resolved_at: null,
      resolved_by_id: null,
      resolved_by_push: null,
      st_diff: null,
      system: false,
      type: target.type === 'issue' ? 'DiscussionNote' : null,
      updated_at: withOffset(note.updated_at ?? note.created_at),
      updated_by_id: null,
      description: note.body,
      url: note.url ?? `${subject.url}#note_${discussionId}`,
    },
    repository: renderBasicProject(repository),
    ...subject.body,
    produce_random_id: asUuid(randomHexOf(deliveryUuid)),
    manual_build: false,
    extend_attributes: null,
    uuid: deliveryUuid,
  };
}

interface Subject {
  readonly type: 'Issue' | 'MergeRequest' | 'Commit';
  readonly id: number | null;
  readonly url: string;
  readonly body: object;
}

function describeSubject(target: NoteTarget, repository: Repository): Subject {
  switch (target.type) {
    case 'issue': {
      const { issue } = target;
      const url = issue.url ?? `${repository.webUrl}/issues/${issue.number}`;
      return { type: 'Issue', id: issue.id ?? issue.number, url, body: { issue: renderNotedIssue(issue, repository) } };
    }
    case 'merge_request': {
      const request = target.merge_request;
      const url = request.url ?? `${repository.webUrl}/merge_requests/${request.number}`;
      const body = { merge_request: renderNotedMergeRequest(request, repository) };
      return { type: 'MergeRequest', id: request.id ?? request.number, url, body };
    }
    case 'commit': {
      const { commit } = target;
      const url = commit.url ?? `${repository.webUrl}/commits/detail/${commit.id}`;
      return { type: 'Commit', id: null, url, body: { commit: renderCommit(commit, repository) } };
    }
  }
}
