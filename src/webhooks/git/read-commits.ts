/** Reads commits with the paths that they touched from `git log`. */
import type { EventInput } from '../events/event.ts';
import { formatTime, LIMITS, shorten } from '../events/event-limits.ts';
import { MAX_EVENT_BYTES } from './fit-event.ts';
import type { RunGit } from './run-git.ts';
import { createSplitter } from './split-output.ts';

export type CommitInput = NonNullable<Extract<EventInput, { kind: 'push' }>['commits']>[number];

/**
 * Fields end in NUL, which no message and no path can contain. The time is requested in git's raw format: for a time that git cannot
 * format, it would print nothing, the placeholder itself or an impossible date, and it fails for a time before 1970.
 */
const FIELDS = ['%H', '%T', '%P', '%an', '%ae', '%cn', '%ce', '%cd', '%(trailers:key=Co-authored-by,valueonly)', '%B'];
const FORMAT = `${FIELDS.join('%x00')}%x00`;
/** The status of a path, with a newline before the first of a commit. */
const STATUS = /^\n?([A-Z])\d*$/;
const ID = /^[0-9a-f]{40,64}$/;

/** Beyond this many bytes the event is too large for all paths, so only the first of each commit are kept. */
const MANY_PATH_BYTES = MAX_EVENT_BYTES;
const MAX_PATHS_OF_MANY = 2000;
const MAX_PATH_BYTES = 16 * 1024 * 1024;

export interface CommitQuestion {
  /** How many of the newest commits. */
  readonly count: number;
  readonly revisions: readonly string[];
  /** Called if git fails; the commits that it wrote before are still returned. */
  readonly onFailure: (error: unknown) => void;
}

/** The newest commits of the revisions, in order of age with the oldest first, with the paths that each one touched. */
export async function readCommits(git: RunGit, question: CommitQuestion): Promise<CommitInput[]> {
  const parser = createLogParser();
  const call = {
    argv: [
      'log',
      '-z',
      '--stdin',
      '--ignore-missing',
      `--max-count=${question.count}`,
      `--format=${FORMAT}`,
      '--date=raw',
      '--encoding=UTF-8',
      '--no-show-signature',
      '--no-color',
      '--name-status',
      '--no-renames',
      '--diff-merges=first-parent',
    ],
    input: `${question.revisions.join('\n')}\n`,
    onOutput: parser.push,
  };
  await git(call).catch(question.onFailure);
  return parser.listCommits().reverse();
}

interface DraftCommit {
  readonly fields: string[];
  readonly added: string[];
  readonly modified: string[];
  readonly removed: string[];
}

/** Parses `git log`: for each commit its fields, then pairs of a status and a path, with empty pieces in between. */
export function createLogParser() {
  const drafts: DraftCommit[] = [];
  let status: string | undefined;
  let pathBytes = 0;

  const keepPath = (draft: DraftCommit, piece: Buffer) => {
    const paths = listPathsOf(draft, status ?? '');
    status = undefined;
    pathBytes += piece.byteLength + 3;
    if (pathBytes > MAX_PATH_BYTES || (pathBytes > MANY_PATH_BYTES && paths.length >= MAX_PATHS_OF_MANY)) return;
    paths.push(piece.toString('utf8'));
  };
  const take = (piece: Buffer) => {
    const draft = drafts.at(-1);
    if (draft !== undefined && draft.fields.length < FIELDS.length) draft.fields.push(piece.toString('utf8'));
    else if (draft !== undefined && status !== undefined) keepPath(draft, piece);
    else if (piece.byteLength <= 64) startNext(piece.toString('latin1'));
  };
  const startNext = (text: string) => {
    status = STATUS.exec(text)?.[1];
    if (ID.test(text)) drafts.push({ fields: [text], added: [], modified: [], removed: [] });
  };

  const splitter = createSplitter(0, LIMITS.text, take);
  return {
    push: (chunk: Buffer) => {
      splitter.push(chunk);
      return true;
    },
    listCommits: () => drafts.filter(({ fields }) => fields.length === FIELDS.length).map(toCommit),
  };
}

/** The list of paths for a status; a changed type (T) counts as modified. */
function listPathsOf(draft: DraftCommit, status: string): string[] {
  if (status === 'A') return draft.added;
  return status === 'D' ? draft.removed : draft.modified;
}

function toCommit({ fields, added, modified, removed }: DraftCommit): CommitInput {
  const [id = '', tree = '', parents = '', name = '', email = '', ...rest] = fields;
  const [committerName = '', committerEmail = '', time = '', coAuthors = '', message = ''] = rest;
  const [seconds = '', offset = ''] = time.split(' ');
  return {
    id,
    message,
    timestamp: formatTime(Number(seconds), offset),
    author: toSignature(name, email),
    committer: toSignature(committerName, committerEmail),
    ...(tree !== '' && { tree }),
    parents: parents
      .split(' ')
      .filter((parent) => parent !== '')
      .slice(0, LIMITS.parents),
    added,
    removed,
    modified,
    co_authors: coAuthors
      .split('\n')
      .filter((line) => line.trim() !== '')
      .slice(0, LIMITS.coAuthors)
      .map(parseSignature),
  };
}

/** Parses `Ada <ada@example.com>`, or a name without an address. */
function parseSignature(text: string): { name: string; email: string } {
  const start = text.indexOf('<');
  const end = text.indexOf('>', start);
  if (start < 0 || end < 0) return toSignature(text.trim(), '');
  return toSignature(text.slice(0, start).trim(), text.slice(start + 1, end));
}

function toSignature(name: string, email: string): { name: string; email: string } {
  return { name: shorten(name, LIMITS.word), email: shorten(email, LIMITS.word) };
}
