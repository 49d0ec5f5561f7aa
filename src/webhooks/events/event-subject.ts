/** Names the subject of an event, by which people find it in the log: `main`, `v1.2`, `#12`. */
import { type Event, type EventOf, shortRef } from './event.ts';

const SHORT_SHA = 10;
const MAX_LENGTH = 200;

export function subjectOf(event: Event): string {
  return findSubject(event).slice(0, MAX_LENGTH);
}

function findSubject(event: Event): string {
  switch (event.kind) {
    case 'push':
    case 'tag_push':
      return shortRef(event.ref);
    case 'issue':
      return `#${event.issue.number}`;
    case 'merge_request':
      return `#${event.merge_request.number}`;
    case 'note':
      return subjectOfNote(event.target);
  }
}

function subjectOfNote(target: EventOf<'note'>['target']): string {
  if (target.type === 'issue') return `#${target.issue.number}`;
  return target.type === 'merge_request' ? `#${target.merge_request.number}` : target.commit.id.slice(0, SHORT_SHA);
}
