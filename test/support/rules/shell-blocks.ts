import { readFileSync } from 'node:fs';

/** A fenced block of a page that shows commands. */
export interface ShellBlock {
  /** The page and the line of the fence, for messages. */
  readonly place: string;
  readonly text: string;
  /** From the comment `<!-- not run: … -->` before the block. */
  readonly reason: string | undefined;
  /** The files of the comment `<!-- run by FILE and FILE -->` before the block; none without it. */
  readonly runBy: readonly string[];
}

const BLOCK = /(?:<!-- (not run: |run by )(.+?) -->\n+)?^( *)```(\w*)\n([\s\S]*?)^ *```$/gm;
const COMMAND = /^\s*(?:npx |npm |trivet |curl |node |grpcurl )/m;

const OUTPUT = /<!-- printed by the commands above -->\n+```\n([\s\S]*?)^```$/gm;

/** What a page says that its commands print, where it promises it by a comment. */
export function listShownOutputs(page: string, text = readFileSync(page, 'utf8')): string[] {
  return [...text.matchAll(OUTPUT)].map(([, shown = '']) => shown);
}

/** What a test that runs the commands must have too: words of `trivet`, long options, and paths of the API. */
export function listCommandParts(text: string): readonly string[] {
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  const parts = lines.flatMap((line) => {
    const command = line.replace(/(?:^|\s)#.*$/, '');
    const [, ...words] = /\btrivet ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?(?= |$)/.exec(command) ?? [];
    const options = command.match(/(?<=\s)--[a-z][\w-]*/g) ?? [];
    const paths = command.match(/(?<=\w|[}"])\/(?:oauth|api)\/[\w/.-]+/g) ?? [];
    return [...words.filter((word) => word !== undefined), ...options, ...paths];
  });
  return [...new Set(parts)];
}

/** The blocks of a page that are marked as shell, or have a line that begins like a command. */
export function listShellBlocks(page: string, text = readFileSync(page, 'utf8')): ShellBlock[] {
  const blocks: ShellBlock[] = [];
  for (const match of text.matchAll(BLOCK)) {
    const [, marker, about, indent = '', language = '', body = ''] = match;
    if (language !== 'sh' && (language !== '' || !COMMAND.test(body))) continue;
    blocks.push({
      place: `${page}:${text.slice(0, match.index).split('\n').length}`,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      reason: marker === 'not run: ' ? about : undefined,
      runBy: marker === 'run by ' ? (about ?? '').split(' and ') : [],
    });
  }
  return blocks;
}
