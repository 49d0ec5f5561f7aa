/**
 * Defines the neutral format of an event, into which payloads of code hosts are translated, and checks its fields. `bridges/` and `git/`
 * translate into it; `profiles/` renders the bodies that receivers get.
 */
import { z } from '@hono/zod-openapi';
import { EPOCH, LIMITS, MAX_LISTED_COMMITS, parseTime, shorten } from './event-limits.ts';

const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/, 'must be 40 or 64 lower-case hex digits');
const time = z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with Z or an offset' });

/** Field rules for callers of the API, who can correct an event that is refused. */
const REFUSING = {
  word: z.string().max(LIMITS.word),
  text: z.string().max(LIMITS.text),
  branch: z.string().max(LIMITS.ref),
  branchRef: z
    .string()
    .max(LIMITS.ref)
    .regex(/^refs\/heads\/[\s\S]/, 'must start with refs/heads/'),
  tagRef: z
    .string()
    .max(LIMITS.ref)
    .regex(/^refs\/tags\/[\s\S]/, 'must start with refs/tags/'),
  address: z.string().max(LIMITS.address),
  optionalAddress: z.string().max(LIMITS.address).optional(),
  personId: z.int(),
  optionalSha: sha.optional(),
  optionalCount: z.int().min(0).optional(),
  time,
  optionalTime: time.optional(),
  commitTime: time,
  list: <Item extends z.ZodType>(item: Item, max: number) => z.array(item).max(max),
};

type Rules = typeof REFUSING;

const cut = (max: number) => z.string().transform((text) => shorten(text, max));
const cutBefore = (schema: z.ZodType, max: number) =>
  z.preprocess((value) => (typeof value === 'string' ? shorten(value, max) : value), schema);
const readTime = z.preprocess(
  (value) => (typeof value === 'string' && !time.safeParse(value).success ? parseTime(value) : value),
  time,
);

/** Field rules for events that have happened already: texts are shortened and invalid optional fields left out, not refused. */
const SHORTENING = {
  word: cut(LIMITS.word),
  text: cut(LIMITS.text),
  branch: cut(LIMITS.ref),
  branchRef: cutBefore(REFUSING.branchRef, LIMITS.ref),
  tagRef: cutBefore(REFUSING.tagRef, LIMITS.ref),
  // A shortened URL would be useless, so it is left out.
  address: REFUSING.address.catch(''),
  optionalAddress: REFUSING.optionalAddress.catch(undefined),
  personId: REFUSING.personId.catch(0),
  optionalSha: REFUSING.optionalSha.catch(undefined),
  optionalCount: REFUSING.optionalCount.catch(undefined),
  time: readTime.catch(EPOCH),
  optionalTime: readTime.optional().catch(undefined),
  commitTime: readTime.catch(EPOCH),
  list: <Item extends z.ZodType>(item: Item, max: number) => z.array(item).transform((items) => items.slice(0, max)),
  // The schemas are of other classes, but accept and return the same types.
} as unknown as Rules;

function describePerson({ word, address, personId }: Rules) {
  return z
    .object({
      id: personId.default(0),
      username: word.default(''),
      name: word.default(''),
      email: word.default(''),
      avatar_url: address.default(''),
    })
    .openapi('Person');
}

function describeCommit({ word, text, optionalAddress, optionalSha, commitTime, list }: Rules) {
  const signature = z.object({ name: word.default(''), email: word.default('') });
  return z
    .object({
      id: sha,
      message: text.default(''),
      timestamp: commitTime,
      url: optionalAddress.openapi({ description: "Defaults to the commit's page below the repository's address." }),
      author: signature,
      committer: signature.optional(),
      parents: list(sha, LIMITS.parents).default([]),
      tree: optionalSha,
      added: z.array(text).default([]),
      modified: z.array(text).default([]),
      removed: z.array(text).default([]),
      co_authors: list(signature, LIMITS.coAuthors).default([]),
    })
    .openapi('Commit');
}

const change = z.object({ previous: z.unknown().optional(), current: z.unknown().optional() });
const changes = z.record(z.string(), change).default({}).openapi({ description: 'Field → what it was and is.' });

function describeLabel({ word, personId }: Rules) {
  return z.object({ id: personId.default(0), title: word, color: word.default('') });
}

type PersonSchema = ReturnType<typeof describePerson>;
type CommitSchema = ReturnType<typeof describeCommit>;

function describeIssue(rules: Rules, person: PersonSchema) {
  const { text, time, optionalTime, optionalAddress } = rules;
  return z
    .object({
      id: z.int().optional().openapi({ description: 'Unique over the host; defaults to the number.' }),
      number: z.int().min(1),
      title: text,
      description: text.default(''),
      state: z.enum(['opened', 'closed']).default('opened'),
      author: person,
      assignees: z.array(person).default([]),
      labels: z.array(describeLabel(rules)).default([]),
      confidential: z.boolean().default(false),
      due_date: z.string().nullable().default(null),
      created_at: time,
      updated_at: optionalTime,
      closed_at: time.nullable().default(null),
      url: optionalAddress,
    })
    .openapi('Issue');
}

function describeSourceRepository({ word, address, personId }: Rules) {
  return z.object({
    id: personId.default(0),
    owner: word,
    name: word,
    web_url: address,
    http_url: address.default(''),
    ssh_url: address.default(''),
  });
}

function describeMergeRequest(rules: Rules, person: PersonSchema, commit: CommitSchema) {
  const { text, branch, time, optionalTime, optionalAddress } = rules;
  return z
    .object({
      id: z.int().optional(),
      number: z.int().min(1),
      title: text,
      description: text.default(''),
      state: z.enum(['opened', 'merged', 'closed']).default('opened'),
      draft: z.boolean().default(false),
      source_branch: branch.default(''),
      target_branch: branch.default(''),
      source_repository: describeSourceRepository(rules)
        .optional()
        .openapi({ description: 'Only when it comes from a fork.' }),
      last_commit: commit.optional().openapi({ description: 'Absent only if the code host does not report it.' }),
      target_commit: commit.optional(),
      merge_commit: rules.optionalSha.nullable().default(null),
      merge_status: z.enum(['unchecked', 'can_be_merged', 'cannot_be_merged']).default('unchecked'),
      author: person,
      assignees: z.array(person).default([]),
      reviewers: z.array(person).default([]),
      labels: z.array(describeLabel(rules)).default([]),
      created_at: time,
      updated_at: optionalTime,
      url: optionalAddress,
    })
    .openapi('MergeRequest');
}

function describeReference({ text, list, optionalCount }: Rules, person: PersonSchema, commit: CommitSchema) {
  return {
    before: sha.openapi({ description: 'All zeros when the reference is new.' }),
    after: sha.openapi({ description: 'All zeros when the reference was deleted.' }),
    message: text.default(''),
    commits: list(commit, LIMITS.commits).default([]),
    total_commits: optionalCount.openapi({ description: 'When `commits` does not list them all.' }),
    push_options: list(text, LIMITS.pushOptions).default([]),
    actor: person,
  };
}

type ReferenceShape = ReturnType<typeof describeReference>;

function describePushEvent({ branch, branchRef }: Rules, reference: ReferenceShape) {
  return z
    .object({
      kind: z.literal('push'),
      ref: branchRef,
      base_ref: branch.nullable().default(null),
      forced: z.boolean().default(false).openapi({ description: '`before` is no ancestor of `after`.' }),
      ...reference,
    })
    .openapi('PushEvent');
}

function describeTagPushEvent({ branch, tagRef, optionalSha }: Rules, reference: ReferenceShape) {
  return z
    .object({
      kind: z.literal('tag_push'),
      ref: tagRef,
      base_ref: branch.nullable().default(null).openapi({ description: 'A branch that holds the tagged commit.' }),
      checkout: optionalSha.nullable().openapi({ description: 'The commit that an annotated tag points to.' }),
      ...reference,
    })
    .openapi('TagPushEvent');
}

function describeNote({ word, text, time, optionalTime, optionalAddress }: Rules) {
  return z
    .object({
      id: z.int().min(0),
      body: text,
      discussion_id: word.optional(),
      created_at: time,
      updated_at: optionalTime,
      url: optionalAddress,
    })
    .openapi('Note');
}

function describeEvents(rules: Rules) {
  const person = describePerson(rules);
  const commit = describeCommit(rules);
  const issue = describeIssue(rules, person);
  const mergeRequest = describeMergeRequest(rules, person, commit);
  const reference = describeReference(rules, person, commit);
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
      previous_head: rules.optionalSha.openapi({ description: 'The former last commit, when new commits came.' }),
      changes,
    })
    .openapi('MergeRequestEvent');
  const noteTarget = z.discriminatedUnion('type', [
    z.object({ type: z.literal('issue'), issue }),
    z.object({ type: z.literal('merge_request'), merge_request: mergeRequest }),
    z.object({ type: z.literal('commit'), commit }),
  ]);
  const noteEvent = z
    .object({
      kind: z.literal('note'),
      actor: person,
      note: describeNote(rules),
      target: noteTarget.openapi({ description: 'What the comment is on.' }),
    })
    .openapi('NoteEvent');
  const pushes = [describePushEvent(rules, reference), describeTagPushEvent(rules, reference)] as const;
  return z.discriminatedUnion('kind', [...pushes, issueEvent, mergeRequestEvent, noteEvent]).openapi('Event');
}

/** An event from a caller: a field that is too long or malformed is refused with the reason. */
export const eventSchema = describeEvents(REFUSING);

/** An event from another code host: fields that are too long are shortened. */
export const foreignEventSchema = describeEvents(SHORTENING);

export type Event = z.output<typeof eventSchema>;
/** An event as a caller may write it: fields with defaults are optional. */
export type EventInput = z.input<typeof eventSchema>;
export type Person = z.output<PersonSchema>;
export type Commit = z.output<CommitSchema>;
export type Issue = z.output<ReturnType<typeof describeIssue>>;
export type MergeRequest = z.output<ReturnType<typeof describeMergeRequest>>;
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
