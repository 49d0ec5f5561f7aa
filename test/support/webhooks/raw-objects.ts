/** Writes git objects that no git command would write, but that every git accepts. */
import { execFileSync } from 'node:child_process';

export interface RawObjects {
  /** Writes bytes as an object of a type, unchecked, and returns its id. */
  write(type: 'commit' | 'tag' | 'blob', content: Buffer | string): string;
  /** Makes references; names are bytes, one a character. */
  setRefs(idByRef: ReadonlyMap<string, string>): void;
  readonly emptyTree: string;
}

export function createRawObjects(folder: string): RawObjects {
  const run = (argv: readonly string[], input: Buffer | string = '') =>
    execFileSync('git', argv, { cwd: folder, input, stdio: ['pipe', 'pipe', 'pipe'] })
      .toString('utf8')
      .trim();
  return {
    write: (type, content) => run(['hash-object', '-t', type, '-w', '--stdin', '--literally'], content),
    setRefs: (idByRef) => {
      const lines = [...idByRef].map(([ref, id]) => `update ${ref} ${id}\n`);
      run(['update-ref', '--stdin'], Buffer.from(lines.join(''), 'latin1'));
    },
    emptyTree: run(['mktree']),
  };
}

export interface CommitParts {
  readonly tree: string;
  readonly parents?: readonly string[];
  readonly author?: string;
  readonly committer?: string;
  /** More headers, each a line. */
  readonly headers?: string;
  readonly message?: string;
}

const SIGNATURE = 'Grace <grace@example.com> 1772330400 +0100';

/** The bytes of a commit, one a character of what is given. */
export function describeRawCommit(parts: CommitParts): Buffer {
  const { tree, parents = [], author = SIGNATURE, committer = SIGNATURE, headers = '', message = 'x\n' } = parts;
  const lines = [`tree ${tree}\n`, ...parents.map((parent) => `parent ${parent}\n`)];
  return Buffer.from(`${lines.join('')}author ${author}\ncommitter ${committer}\n${headers}\n${message}`, 'latin1');
}
