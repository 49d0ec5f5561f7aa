/** Shortens a push that is too large for one request: fewer paths, shorter messages, and as a last resort no commits. */
import type { EventInput } from '../events/event.ts';
import { shorten } from '../events/event-limits.ts';

type CommitInput = NonNullable<Extract<EventInput, { kind: 'push' }>['commits']>[number];

/** Below the default limit of the service for a request (1 MiB, `HTTP_MAX_BODY_BYTES`). */
export const MAX_EVENT_BYTES = 900_000;

/** Limits of a commit, tried in turn: the number of paths of each kind, and the characters of the message. */
const STEPS: readonly (readonly [paths: number, message: number])[] = [
  [2000, 16_384],
  [500, 16_384],
  [100, 16_384],
  [20, 4096],
  [0, 1000],
  [0, 100],
];

/** Leaves out paths and the ends of messages, and at last all commits, until the JSON of the event has at most `maxBytes` bytes. */
export function fitEvent(event: EventInput, maxBytes: number = MAX_EVENT_BYTES): EventInput {
  if (event.kind !== 'push' && event.kind !== 'tag_push') return event;
  if (sizeOf(event) <= maxBytes) return event;
  for (const [paths, message] of STEPS) {
    const commits = (event.commits ?? []).map((commit) => limitCommit(commit, paths, message));
    const fitted = { ...event, commits, message: shorten(event.message ?? '', message) };
    if (sizeOf(fitted) <= maxBytes) return fitted;
  }
  return { ...event, commits: [], message: '', push_options: [] };
}

function limitCommit(commit: CommitInput, paths: number, message: number): CommitInput {
  return {
    ...commit,
    message: shorten(commit.message ?? '', message),
    added: (commit.added ?? []).slice(0, paths),
    modified: (commit.modified ?? []).slice(0, paths),
    removed: (commit.removed ?? []).slice(0, paths),
  };
}

function sizeOf(event: EventInput): number {
  return Buffer.byteLength(JSON.stringify(event));
}
