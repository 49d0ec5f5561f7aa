import type { EventInput } from '../event.ts';
import type { RunGit } from './run-git.ts';

export type CommitInput = NonNullable<Extract<EventInput, { kind: 'push' }>['commits']>[number];

/** Fields end in NUL, which no message and no path can hold. */
const FIELDS = ['%H', '%T', '%P', '%an', '%ae', '%cn', '%ce', '%cI', '%(trailers:key=Co-authored-by,valueonly)', '%B'];
const FORMAT = `${FIELDS.join('%x00')}%x00`;
/** What happened to a path, with a newline before the first of a commit. */
const STATUS = /^\n?[A-Z]\d*$/;

/** The newest `count` commits of the revisions, the oldest of them first, with the paths each one touched. */
export async function readCommits(git: RunGit, count: number, revisions: readonly string[]): Promise<CommitInput[]> {
  const output = await git(
    'log',
    '-z',
    `--max-count=${count}`,
    `--format=${FORMAT}`,
    '--name-status',
    '--no-renames',
    '--diff-merges=first-parent',
    ...revisions,
    '--',
  );
  return parseLog(output).reverse();
}

/** A commit is its fields, an empty token, and pairs of a status and a path. */
export function parseLog(output: string): CommitInput[] {
  const tokens = output.split('\0');
  const commits: CommitInput[] = [];
  for (let at = 0; tokens[at]; ) {
    const fields = tokens.slice(at, at + FIELDS.length);
    const paths = readPaths(tokens, at + FIELDS.length + 1);
    commits.push(toCommit(fields, paths));
    at += FIELDS.length + 1 + paths.length * 2;
  }
  return commits;
}

interface TouchedPath {
  readonly status: string;
  readonly path: string;
}

function readPaths(tokens: readonly string[], start: number): TouchedPath[] {
  const paths: TouchedPath[] = [];
  for (let at = start; STATUS.test(tokens[at] ?? ''); at += 2)
    paths.push({ status: (tokens[at] ?? '').trim(), path: tokens[at + 1] ?? '' });
  return paths;
}

function toCommit(fields: readonly string[], paths: readonly TouchedPath[]): CommitInput {
  const [id = '', tree = '', parents = '', name = '', email = '', ...rest] = fields;
  const [committerName = '', committerEmail = '', timestamp = '', coAuthors = '', message = ''] = rest;
  return {
    id,
    message,
    timestamp,
    author: { name, email },
    committer: { name: committerName, email: committerEmail },
    tree,
    parents: parents.split(' ').filter((parent) => parent !== ''),
    added: paths.filter(({ status }) => status === 'A').map(({ path }) => path),
    removed: paths.filter(({ status }) => status === 'D').map(({ path }) => path),
    // A changed type (T) is a change too.
    modified: paths.filter(({ status }) => status !== 'A' && status !== 'D').map(({ path }) => path),
    co_authors: coAuthors
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map(parseSignature),
  };
}

function parseSignature(text: string): { name: string; email: string } {
  const match = /^\s*(.*?)\s*<([^>]*)>/.exec(text);
  return match ? { name: match[1] ?? '', email: match[2] ?? '' } : { name: text.trim(), email: '' };
}
