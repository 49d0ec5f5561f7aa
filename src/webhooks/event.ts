/**
 * An event in our own words: what happened, to what, by whom. Code hosts' payloads are translated into it (`bridges/`,
 * `git/`), receivers' payloads are rendered from it (`profiles/`).
 */
import { z } from '@hono/zod-openapi';
import { MAX_LISTED_COMMITS } from './event-kind.ts';

const MAX_COMMITS = 1000;

const word = z.string().max(255);
const text = z.string().max(262_144);
const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/, 'must be 40 or 64 lower-case hex digits');
const time = z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with Z or an offset' });
const count = z.int().min(0);
const address = z.string().max(2048);

export const person = z
  .object({
    id: z.int().default(0),
    username: word.default(''),
    name: word.default(''),
    email: word.default(''),
    avatar_url: address.default(''),
  })
  .openapi('Person');

const signature = z.object({ name: word.default(''), email: word.default('') });

export const commit = z
  .object({
    id: sha,
    message: text.default(''),
    timestamp: time,
    url: address.optional().openapi({ description: "Defaults to the commit's page below the repository's address." }),
    author: signature,
    committer: signature.optional(),
    parents: z.array(sha).max(64).default([]),
    tree: sha.optional(),
    added: z.array(text).default([]),
    modified: z.array(text).default([]),
    removed: z.array(text).default([]),
    co_authors: z.array(signature).default([]),
  })
  .openapi('Commit');

const label = z.object({ id: z.int().default(0), title: word, color: word.default('') });

const change = z.object({ previous: z.unknown().optional(), current: z.unknown().optional() });
const changes = z.record(z.string(), change).default({}).openapi({ description: 'Field → what it was and is.' });

const issue = z
  .object({
    id: z.int().optional().openapi({ description: 'Unique over the host; defaults to the number.' }),
    number: z.int().min(1),
    title: text,
    description: text.default(''),
    state: z.enum(['opened', 'closed']).default('opened'),
    author: person,
    assignees: z.array(person).default([]),
    labels: z.array(label).default([]),
    confidential: z.boolean().default(false),
    due_date: z.string().nullable().default(null),
    created_at: time,
    updated_at: time.optional(),
    closed_at: time.nullable().default(null),
    url: address.optional(),
  })
  .openapi('Issue');

const sourceRepository = z.object({
  id: z.int().default(0),
  owner: word,
  name: word,
  web_url: address,
  http_url: address.default(''),
  ssh_url: address.default(''),
});

const mergeRequest = z
  .object({
    id: z.int().optional(),
    number: z.int().min(1),
    title: text,
    description: text.default(''),
    state: z.enum(['opened', 'merged', 'closed']).default('opened'),
    draft: z.boolean().default(false),
    source_branch: word.default(''),
    target_branch: word.default(''),
    source_repository: sourceRepository.optional().openapi({ description: 'Only when it comes from a fork.' }),
    last_commit: commit.optional().openapi({ description: 'Only absent where a code host does not tell it.' }),
    target_commit: commit.optional(),
    merge_commit: sha.nullable().default(null),
    merge_status: z.enum(['unchecked', 'can_be_merged', 'cannot_be_merged']).default('unchecked'),
    author: person,
    assignees: z.array(person).default([]),
    reviewers: z.array(person).default([]),
    labels: z.array(label).default([]),
    created_at: time,
    updated_at: time.optional(),
    url: address.optional(),
  })
  .openapi('MergeRequest');

const reference = {
  before: sha.openapi({ description: 'All zeros when the reference is new.' }),
  after: sha.openapi({ description: 'All zeros when the reference was deleted.' }),
  message: text.default(''),
  commits: z.array(commit).max(MAX_COMMITS).default([]),
  total_commits: count.optional().openapi({ description: 'When `commits` does not list them all.' }),
  push_options: z.array(text).max(100).default([]),
  actor: person,
};

const pushEvent = z
  .object({
    kind: z.literal('push'),
    ref: z
      .string()
      .max(1024)
      .regex(/^refs\/heads\/./, 'must start with refs/heads/'),
    base_ref: word.nullable().default(null),
    forced: z.boolean().default(false).openapi({ description: '`before` is no ancestor of `after`.' }),
    ...reference,
  })
  .openapi('PushEvent');

const tagPushEvent = z
  .object({
    kind: z.literal('tag_push'),
    ref: z
      .string()
      .max(1024)
      .regex(/^refs\/tags\/./, 'must start with refs/tags/'),
    base_ref: word.nullable().default(null).openapi({ description: 'A branch that holds the tagged commit.' }),
    checkout: sha.nullable().optional().openapi({ description: 'The commit behind an annotated tag.' }),
    ...reference,
  })
  .openapi('TagPushEvent');

const issueEvent = z
  .object({
    kind: z.literal('issue'),
    action: z.enum(['open', 'close', 'reopen', 'update']),
    actor: person,
    issue,
    changes,
  })
  .openapi('IssueEvent');

const mergeRequestEvent = z
  .object({
    kind: z.literal('merge_request'),
    action: z.enum(['open', 'update', 'merge', 'close', 'reopen']),
    actor: person,
    merge_request: mergeRequest,
    previous_head: sha.optional().openapi({ description: 'The former last commit, when new commits came.' }),
    changes,
  })
  .openapi('MergeRequestEvent');

const note = z
  .object({
    id: z.int().min(0),
    body: text,
    discussion_id: word.optional(),
    created_at: time,
    updated_at: time.optional(),
    url: address.optional(),
  })
  .openapi('Note');

const noteTarget = z.discriminatedUnion('type', [
  z.object({ type: z.literal('issue'), issue }),
  z.object({ type: z.literal('merge_request'), merge_request: mergeRequest }),
  z.object({ type: z.literal('commit'), commit }),
]);

const noteEvent = z
  .object({
    kind: z.literal('note'),
    actor: person,
    note,
    target: noteTarget.openapi({ description: 'What the comment is on.' }),
  })
  .openapi('NoteEvent');

export const eventSchema = z
  .discriminatedUnion('kind', [pushEvent, tagPushEvent, issueEvent, mergeRequestEvent, noteEvent])
  .openapi('Event');

export type Event = z.output<typeof eventSchema>;
/** The same as a caller may write it: with defaults left out. */
export type EventInput = z.input<typeof eventSchema>;
export type Person = z.output<typeof person>;
export type Commit = z.output<typeof commit>;
export type Issue = z.output<typeof issue>;
export type MergeRequest = z.output<typeof mergeRequest>;
export type EventOf<Kind extends Event['kind']> = Extract<Event, { kind: Kind }>;
export type ReferenceEvent = EventOf<'push' | 'tag_push'>;

export function listCommits(event: ReferenceEvent): readonly Commit[] {
  return event.commits.slice(-MAX_LISTED_COMMITS);
}

export function countCommits(event: ReferenceEvent): number {
  return Math.max(event.total_commits ?? 0, event.commits.length);
}

export function isZeroSha(id: string): boolean {
  return /^0+$/.test(id);
}

/** `refs/heads/x/y` → `x/y`. */
export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(heads|tags)\//, '');
}
