/** Formats a log line for a person at a terminal: time, level, text and fields. */
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red', fatal: 'red' };
const LEVEL_WIDTH = 5;

/** `line` is one line of JSON. Any other text stays unchanged. */
export function toReadableLine(line: string, isColoured: boolean): string {
  const entry = parseEntry(line);
  if (entry === undefined) return line;
  const { level, time, msg, ...fields } = entry;
  const word = String(level);
  const heading = `${timeOfDay(String(time))} ${word.toUpperCase().padEnd(LEVEL_WIDTH)}`;
  const style = STYLES[word];
  const parts = [
    isColoured && style !== undefined ? styleText(style, heading, { validateStream: false }) : heading,
    typeof msg === 'string' ? escapeControls(msg) : '',
    ...Object.entries(fields).map(([name, value]) => describeField(name, value)),
  ];
  return `${parts.filter((part) => part !== '').join(' ')}${describeStack(fields.err)}\n`;
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'object' && entry !== null ? { ...entry } : undefined;
  } catch {
    return undefined;
  }
}

/** The time of day by the local clock, as other programs in the terminal show it. */
function timeOfDay(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  return `${at.toTimeString().slice(0, 8)}.${String(at.getMilliseconds()).padStart(3, '0')}`;
}

function describeField(name: string, value: unknown): string {
  if (name === 'err' && hasStack(value)) return '';
  const isPlain = typeof value === 'string' && /^[\w.:/@+-]+$/.test(value);
  return `${name}=${isPlain ? value : escapeControls(JSON.stringify(value))}`;
}

function describeStack(error: unknown): string {
  if (!hasStack(error)) return '';
  return error.stack
    .split('\n')
    .map((line) => `\n    ${escapeControls(line)}`)
    .join('');
}

function hasStack(value: unknown): value is { readonly stack: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string';
}

/** Escapes control sequences, which text of strangers may contain. */
function escapeControls(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
