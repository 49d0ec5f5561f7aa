/**
 * From what `post-receive` is told (old id, new id, reference) to events with real commits. The references have moved
 * already, so commits that are new to the repository are those that no reference outside this push reaches.
 */
import type { EventInput } from '../event.ts';
import { MAX_LISTED_COMMITS } from '../event-kind.ts';
import { type CommitInput, readCommits } from './read-commits.ts';
import { askGit, type RunGit } from './run-git.ts';

export interface RefUpdate {
  readonly before: string;
  readonly after: string;
  readonly ref: string;
}

type PushInput = Extract<EventInput, { kind: 'push' }>;
type TagInput = Extract<EventInput, { kind: 'tag_push' }>;
type Actor = PushInput['actor'];

/** How many references are read at a time: each takes a few short git processes. */
const PARALLEL = 4;

export function parseUpdates(input: string): RefUpdate[] {
  return input
    .split('\n')
    .map((line) => /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) (.+)$/.exec(line))
    .flatMap((match) => (match ? [{ before: match[1] ?? '', after: match[2] ?? '', ref: match[3] ?? '' }] : []));
}

/** In the order of the updates; references other than branches and tags are no events. */
export async function readPush(git: RunGit, updates: readonly RefUpdate[], actor: Actor): Promise<EventInput[]> {
  const relevant = updates.filter(({ ref }) => /^refs\/(heads|tags)\//.test(ref));
  const events: EventInput[] = [];
  for (let at = 0; at < relevant.length; at += PARALLEL) {
    const batch = relevant.slice(at, at + PARALLEL);
    events.push(...(await Promise.all(batch.map((update) => readUpdate(git, update, relevant, actor)))));
  }
  return events;
}

function readUpdate(git: RunGit, update: RefUpdate, all: readonly RefUpdate[], actor: Actor): Promise<EventInput> {
  return update.ref.startsWith('refs/tags/') ? readTag(git, update, actor) : readBranch(git, update, all, actor);
}

async function readBranch(git: RunGit, update: RefUpdate, all: readonly RefUpdate[], actor: Actor): Promise<PushInput> {
  const { before, after, ref } = update;
  if (isZero(after)) return { kind: 'push', ref, before, after, actor };
  const hadBefore = !isZero(before) && (await hasCommit(git, before));
  const revisions = hadBefore ? [after, `^${before}`] : [after, '--not', ...listOthers(all)];
  const [commits, total, forced] = await Promise.all([
    readCommits(git, MAX_LISTED_COMMITS, revisions),
    git('rev-list', '--count', ...revisions, '--'),
    hadBefore ? askGit(git, 'merge-base', '--is-ancestor', before, after).then((isAncestor) => !isAncestor) : false,
  ]);
  return { kind: 'push', ref, before, after, forced, commits, total_commits: Number(total), actor };
}

/** Every reference as it was before this push; not `--all`, which is HEAD too and so follows the branch just made. */
function listOthers(all: readonly RefUpdate[]): string[] {
  const moved = all.map(({ ref }) => `--exclude=${ref}`);
  const former = all.map(({ before }) => before).filter((id) => !isZero(id));
  return [...moved, '--glob=refs/*', ...former];
}

async function readTag(git: RunGit, { before, after, ref }: RefUpdate, actor: Actor): Promise<TagInput> {
  const shared = { kind: 'tag_push' as const, ref, before, after, actor };
  if (isZero(after)) return shared;
  const type = (await git('cat-file', '-t', after)).trim();
  const message = type === 'tag' ? await readTagMessage(git, after) : '';
  const checkout = (await git('rev-parse', '--verify', '--quiet', `${after}^{commit}`).catch(() => '')).trim();
  // A tag may be on a tree or a file: then there is nothing to check out.
  if (checkout === '') return { ...shared, message };
  const [commits, baseRef] = await Promise.all([readCommits(git, 1, [checkout]), findBranchWith(git, checkout)]);
  return { ...shared, message, checkout, base_ref: baseRef, commits, total_commits: commits.length };
}

/** A tag object is headers, an empty line, and the message with a signature behind it. */
async function readTagMessage(git: RunGit, id: string): Promise<string> {
  const content = await git('cat-file', 'tag', id);
  return content
    .slice(content.indexOf('\n\n') + 2)
    .replace(/-----BEGIN (PGP|SSH) SIGNATURE-----[\s\S]*$/, '')
    .trimEnd();
}

/** The default branch if it holds the commit, else any that does. */
async function findBranchWith(git: RunGit, commit: string): Promise<string | null> {
  const output = await git('for-each-ref', `--contains=${commit}`, '--format=%(HEAD)%(refname:short)', 'refs/heads');
  const branches = output.split('\n').filter((line) => line !== '');
  const branch = branches.find((line) => line.startsWith('*')) ?? branches[0];
  return branch?.slice(1) ?? null;
}

async function hasCommit(git: RunGit, id: string): Promise<boolean> {
  return await git('cat-file', '-e', `${id}^{commit}`).then(
    () => true,
    () => false,
  );
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}

const MAX_EVENT_BYTES = 900_000;
const PATH_LIMITS = [2000, 500, 100, 20, 0];
const MAX_MESSAGE_LENGTH = 16_384;

/** Leaves out paths, then the ends of messages, until the service takes the event. */
export function fitEvent(event: EventInput): EventInput {
  if (event.kind !== 'push' && event.kind !== 'tag_push') return event;
  if (sizeOf(event) <= MAX_EVENT_BYTES) return event;
  for (const limit of PATH_LIMITS) {
    const commits = (event.commits ?? []).map((commit) => limitCommit(commit, limit));
    const fitted = { ...event, commits };
    if (sizeOf(fitted) <= MAX_EVENT_BYTES) return fitted;
  }
  return { ...event, commits: [], message: '' };
}

function limitCommit(commit: CommitInput, limit: number): CommitInput {
  return {
    ...commit,
    message: (commit.message ?? '').slice(0, MAX_MESSAGE_LENGTH),
    added: (commit.added ?? []).slice(0, limit),
    modified: (commit.modified ?? []).slice(0, limit),
    removed: (commit.removed ?? []).slice(0, limit),
  };
}

function sizeOf(event: EventInput): number {
  return Buffer.byteLength(JSON.stringify(event));
}
