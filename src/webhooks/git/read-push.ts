/**
 * Makes the events of a push: which references it changed, and which commits are new. Commits of a branch that existed are new if its
 * former commit does not reach them. Commits of a new branch are new if no branch or tag reached them before this push.
 *
 * Every push that git has accepted is published: if a part cannot be read, the event is published without it.
 */
import { describeError } from '../../errors.ts';
import type { EventInput } from '../events/event.ts';
import { LIMITS, MAX_LISTED_COMMITS, shorten } from '../events/event-limits.ts';
import { readCommits } from './read-commits.ts';
import { askGit, type RunGit, readGit } from './run-git.ts';
import { createSplitter } from './split-output.ts';

export interface RefUpdate {
  readonly before: string;
  readonly after: string;
  /** The name as Latin-1, one character for each byte, since it need not be UTF-8. */
  readonly ref: string;
}

export interface PushSource {
  readonly git: RunGit;
  readonly updates: readonly RefUpdate[];
  /** The person who pushes. */
  readonly actor: { readonly username: string; readonly name: string; readonly email?: string };
  readonly pushOptions: readonly string[];
  /** Called with the reason why a part of an event is missing. */
  readonly onGap: (reason: string) => void;
}

type PushInput = Extract<EventInput, { kind: 'push' }>;
type TagInput = Extract<EventInput, { kind: 'tag_push' }>;

/** How many references are read at a time: each takes a few short git processes. */
const PARALLEL = 4;

export function parseUpdates(input: Buffer): RefUpdate[] {
  return input
    .toString('latin1')
    .split('\n')
    .map((line) => /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) (.+)$/.exec(line))
    .flatMap((match) => (match ? [{ before: match[1] ?? '', after: match[2] ?? '', ref: match[3] ?? '' }] : []));
}

/** Returns events in the order of the updates; updates of references other than branches and tags are ignored. */
export async function readPush(source: PushSource): Promise<EventInput[]> {
  const relevant = source.updates.filter(({ ref }) => /^refs\/(heads|tags)\//.test(ref));
  const reading = createReading(source, relevant);
  const events: EventInput[] = [];
  for (let at = 0; at < relevant.length; at += PARALLEL) {
    const batch = relevant.slice(at, at + PARALLEL);
    events.push(...(await Promise.all(batch.map((update) => readUpdate(reading, update)))));
  }
  return events;
}

interface Reading {
  readonly git: RunGit;
  /** The fields that all events of this push share. */
  readonly shared: Pick<PushInput, 'actor' | 'push_options'>;
  /** Ids to exclude from the commits of a new branch; read once, if needed. */
  readonly listOthers: () => Promise<readonly string[]>;
  /** The reference of the default branch, or an empty text; read once, if a tag needs it. */
  readonly findDefault: () => Promise<string>;
  readonly onFailure: (error: unknown) => void;
  /** The value, or `instead` if it cannot be read. */
  readonly orElse: <T>(value: Promise<T>, instead: T) => Promise<T>;
}

function createReading({ git, actor, pushOptions, onGap }: PushSource, relevant: readonly RefUpdate[]): Reading {
  const cut = (word: string) => shorten(word, LIMITS.word);
  const onFailure = (error: unknown) => onGap(describeError(error));
  const { email } = actor;
  let others: Promise<readonly string[]> | undefined;
  let defaultRef: Promise<string> | undefined;
  return {
    git,
    shared: {
      actor: {
        username: cut(actor.username),
        name: cut(actor.name),
        ...(email !== undefined && { email: cut(email) }),
      },
      push_options: pushOptions.slice(0, LIMITS.pushOptions).map((option) => shorten(option, LIMITS.text)),
    },
    listOthers: () => {
      others ??= listOthers(git, relevant);
      return others;
    },
    findDefault: () => {
      defaultRef ??= readGit(git, ['symbolic-ref', '--quiet', 'HEAD']).then(
        (ref) => ref.trim(),
        () => '',
      );
      return defaultRef;
    },
    onFailure,
    orElse: (value, instead) =>
      value.catch((error: unknown) => {
        onFailure(error);
        return instead;
      }),
  };
}

function readUpdate(reading: Reading, update: RefUpdate): Promise<EventInput> {
  return update.ref.startsWith('refs/tags/') ? readTag(reading, update) : readBranch(reading, update);
}

/** Decodes UTF-8; invalid bytes become U+FFFD. */
function decodeRef(ref: string): string {
  return shorten(Buffer.from(ref, 'latin1').toString('utf8'), LIMITS.ref);
}

async function readBranch(
  { git, shared, listOthers, orElse, onFailure }: Reading,
  update: RefUpdate,
): Promise<PushInput> {
  const { before, after } = update;
  const bare = { kind: 'push' as const, ref: decodeRef(update.ref), before, after, ...shared };
  if (isZero(after)) return bare;
  const hadBefore = !isZero(before) && (await hasCommit(git, before));
  const excluded = hadBefore ? [before] : await orElse(listOthers(), []);
  const revisions = [after, ...excluded.map((id) => `^${id}`)];
  const [commits, total, forced] = await Promise.all([
    readCommits(git, { count: MAX_LISTED_COMMITS, revisions, onFailure }),
    orElse(countCommits(git, revisions), undefined),
    hadBefore ? orElse(isRewritten(git, before, after), false) : false,
  ]);
  return { ...bare, forced, commits, total_commits: total ?? commits.length };
}

async function countCommits(git: RunGit, revisions: readonly string[]): Promise<number | undefined> {
  const argv = ['rev-list', '--count', '--stdin', '--ignore-missing'];
  return Number(await readGit(git, argv, `${revisions.join('\n')}\n`));
}

async function isRewritten(git: RunGit, before: string, after: string): Promise<boolean> {
  return !(await askGit(git, 'merge-base', '--is-ancestor', before, after));
}

/**
 * Lists the ids of branches and tags before this push: the present ones of those that it did not move, and the former ones of those that
 * it did. Commits that only other references reach were never published, so they count as new.
 */
async function listOthers(git: RunGit, moved: readonly RefUpdate[]): Promise<readonly string[]> {
  const movedRefs = new Set(moved.map(({ ref }) => ref));
  const ids = new Set(moved.map(({ before }) => before).filter((id) => !isZero(id)));
  const splitter = createSplitter(0x0a, 65_536, (line) => {
    const [id = '', ref = ''] = line.toString('latin1').split(' ');
    if (!movedRefs.has(ref)) ids.add(id);
  });
  const onOutput = (chunk: Buffer) => {
    splitter.push(chunk);
    return true;
  };
  await git({ argv: ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'], onOutput });
  return [...ids];
}

async function readTag(reading: Reading, { before, after, ref }: RefUpdate): Promise<TagInput> {
  const { git, shared, orElse, onFailure } = reading;
  const bare = { kind: 'tag_push' as const, ref: decodeRef(ref), before, after, ...shared };
  if (isZero(after)) return bare;
  const message = await orElse(readTagMessage(git, after), '');
  const checkout = await readGit(git, ['rev-parse', '--verify', '--quiet', `${after}^{commit}`]).then(
    (id) => id.trim(),
    () => '',
  );
  // A tag may be on a tree or a file: then there is nothing to check out.
  if (checkout === '') return { ...bare, message };
  const [commits, branch] = await Promise.all([
    readCommits(git, { count: 1, revisions: [checkout], onFailure }),
    orElse(findBranchWith(reading, checkout), null),
  ]);
  return { ...bare, message, checkout, base_ref: branch, commits, total_commits: commits.length };
}

/** Reads the message of a tag object, between the first empty line and the signature. Other objects have no message. */
async function readTagMessage(git: RunGit, id: string): Promise<string> {
  const type = await readGit(git, ['cat-file', '-t', id]);
  if (type.trim() !== 'tag') return '';
  const content = await readGit(git, ['cat-file', 'tag', id]);
  const start = content.indexOf('\n\n');
  if (start < 0) return '';
  const message = content.slice(start + 2).replace(/-----BEGIN (PGP|SSH) SIGNATURE-----[\s\S]*$/, '');
  return shorten(message.trimEnd(), LIMITS.text);
}

/** The default branch if it contains the commit, else any branch that does. */
async function findBranchWith({ git, findDefault }: Reading, commit: string): Promise<string | null> {
  for (const pattern of [await findDefault(), 'refs/heads'].filter((ref) => ref !== '')) {
    const argv = ['for-each-ref', `--contains=${commit}`, '--count=1', '--format=%(refname:lstrip=2)', pattern];
    const branch = (await readGit(git, argv)).replace(/\n$/, '');
    if (branch !== '') return shorten(branch, LIMITS.ref);
  }
  return null;
}

async function hasCommit(git: RunGit, id: string): Promise<boolean> {
  return await readGit(git, ['cat-file', '-e', `${id}^{commit}`]).then(
    () => true,
    () => false,
  );
}

function isZero(id: string): boolean {
  return /^0+$/.test(id);
}
