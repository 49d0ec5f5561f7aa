import { readFileSync } from 'node:fs';

/** A fenced block of a page that shows commands. */
export interface ShellBlock {
  /** The page and the line of the fence, for messages. */
  readonly place: string;
  readonly text: string;
  /** From the comment `<!-- not run: … -->` before the block. */
  readonly reason: string | undefined;
  /** From the comment `<!-- run by FILE -->` before the block. */
  readonly runBy: string | undefined;
}

const BLOCK = /(?:<!-- (not run: |run by )(.+?) -->\n+)?^( *)```(\w*)\n([\s\S]*?)^ *```$/gm;
const COMMAND = /^\s*(?:npx |npm |trivet |curl |node |grpcurl )/m;

const OUTPUT = /<!-- printed by the commands above -->\n+```\n([\s\S]*?)^```$/gm;

/** What a page says that its commands print, where it promises it by a comment. */
export function listShownOutputs(page: string, text = readFileSync(page, 'utf8')): string[] {
  return [...text.matchAll(OUTPUT)].map(([, shown = '']) => shown);
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
      runBy: marker === 'run by ' ? about : undefined,
    });
  }
  return blocks;
}
