/** Creates sample events to try a receiver with. */
import { createHash } from 'node:crypto';
import { type Event, type EventInput, eventSchema } from './event.ts';
import type { EventKind } from './event-kind.ts';

/** The actor of the sample: the person who sends it. */
export interface SampleActor {
  readonly id?: number;
  readonly username: string;
  readonly name: string;
}

export function createSampleEvent(kind: EventKind, actor: SampleActor, branch: string, nowMs: number): Event {
  return eventSchema.parse(SAMPLE_OF[kind]({ actor, branch, time: `${new Date(nowMs).toISOString().slice(0, 19)}Z` }));
}

interface SampleFacts {
  readonly actor: SampleActor;
  readonly branch: string;
  readonly time: string;
}

const SAMPLE_OF: Record<EventKind, (facts: SampleFacts) => EventInput> = {
  push: ({ actor, branch, time }) => ({
    kind: 'push',
    ref: `refs/heads/${branch}`,
    before: sampleSha('before'),
    after: sampleSha('after'),
    commits: [sampleCommit(actor, time)],
    total_commits: 1,
    actor,
  }),
  tag_push: ({ actor, branch, time }) => ({
    kind: 'tag_push',
    ref: 'refs/tags/v1.0.0',
    base_ref: branch,
    before: '0'.repeat(40),
    after: sampleSha('after'),
    commits: [sampleCommit(actor, time)],
    total_commits: 1,
    actor,
  }),
  issue: (facts) => ({ kind: 'issue', action: 'open', actor: facts.actor, issue: sampleIssue(facts) }),
  merge_request: (facts) => ({
    kind: 'merge_request',
    action: 'open',
    actor: facts.actor,
    merge_request: sampleMergeRequest(facts),
  }),
  note: (facts) => ({
    kind: 'note',
    actor: facts.actor,
    note: { id: 1, body: 'A sample comment', created_at: facts.time },
    target: { type: 'issue', issue: sampleIssue(facts) },
  }),
};

function sampleSha(seed: string): string {
  return createHash('sha1').update(`sample ${seed}`).digest('hex');
}

function sampleCommit(actor: SampleActor, time: string) {
  return {
    id: sampleSha('after'),
    message: 'A sample commit\n',
    timestamp: time,
    author: { name: actor.name, email: `${actor.username}@example.com` },
    modified: ['README.md'],
  };
}

function sampleIssue({ actor, time }: SampleFacts) {
  return { number: 1, title: 'A sample issue', description: 'Nothing to do here', author: actor, created_at: time };
}

function sampleMergeRequest({ actor, branch, time }: SampleFacts) {
  return {
    number: 1,
    title: 'A sample merge request',
    source_branch: 'sample',
    target_branch: branch,
    last_commit: sampleCommit(actor, time),
    author: actor,
    created_at: time,
  };
}
