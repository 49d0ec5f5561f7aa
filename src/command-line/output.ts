/** Prints results to standard output and remarks to standard error, and formats tables. */
import { constants, readFileSync } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { describeError, Failure } from '../errors.ts';

/** Prints the answer of a command to standard output; progress and remarks go to standard error. */
export function print(text: string): void {
  clearProgress();
  process.stdout.write(`${escapeControls(text)}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** Prints a line of progress for a waiting person. */
export function remark(text: string): void {
  clearProgress();
  process.stderr.write(`${escapeControls(text)}\n`);
}

// Control characters except LF, CRLF and tab, and bidi controls. JSON escapes C0 itself but not C1 or bidi.
const HARMFUL = /(?![\n\t]|\r\n)[\p{Cc}\p{Bidi_Control}]/gu;

/** Names, messages and answers come from strangers: control sequences are shown escaped, such as `\u001b`. */
function escapeControls(text: string): string {
  return text.replace(HARMFUL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export type Cell = string | number | boolean | null | undefined;

/** Formats a table: columns as wide as their content, numbers right-aligned, no borders. */
export function formatTable(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map(formatCell));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...texts.map((row) => row[column]?.length ?? 0)),
  );
  const isNumeric = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  );
  const formatRow = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [formatRow(headings), ...texts.map(formatRow)].join('\n');
}

/** Prints a list. Without rows, standard output stays empty and the reason goes to standard error. */
export function printTable(headings: readonly string[], rows: readonly (readonly Cell[])[], ifEmpty: string): void {
  if (rows.length === 0) remark(ifEmpty);
  else print(formatTable(headings, rows));
}

function formatCell(cell: Cell): string {
  // A row is one line, and as wide as its counted characters.
  if (typeof cell === 'string') return escapeControls(cell).replace(/\s+/g, ' ');
  return cell === null || cell === undefined ? '-' : String(cell);
}

/** A line of progress is overwritten by the next output. */
const CLEAR_LINE = '\r\x1b[2K';
let isProgressShown = false;

function clearProgress(): void {
  if (isProgressShown) process.stderr.write(CLEAR_LINE);
  isProgressShown = false;
}

/** Progress on standard error: a self-replacing line on a terminal, a plain line every few seconds elsewhere. */
export function createProgress(nowMs: () => number): (text: string) => void {
  const isTerminal = process.stderr.isTTY;
  let lastMs = isTerminal ? Number.NEGATIVE_INFINITY : nowMs();
  const intervalMs = isTerminal ? 100 : 3000;
  return (text) => {
    if (nowMs() - lastMs < intervalMs) return;
    lastMs = nowMs();
    isProgressShown = isTerminal;
    process.stderr.write(isTerminal ? `${CLEAR_LINE}${text}` : `${text}\n`);
  };
}

/** Reads a named file, `-` for standard input; throws when it cannot. */
export function readNamedFile(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new Failure('invalid', `Cannot read "${path}": ${describeError(error)}`);
  }
}

/** Writes a requested file; throws when it cannot. */
export async function writeOutput(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content).catch((error: unknown) => {
    throw new Failure('invalid', `Cannot write "${path}": ${describeError(error)}`);
  });
}

/** Throws unless a file can be written there, so that a command fails before its work, not after it. */
export async function checkWritable(path: string): Promise<void> {
  await access(dirname(resolve(path)), constants.W_OK).catch((error: unknown) => {
    throw new Failure('invalid', `Cannot write "${path}": ${describeError(error)}`);
  });
}
