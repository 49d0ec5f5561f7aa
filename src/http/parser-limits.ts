/**
 * Limits size, number and nesting of what JSON, form and query parsers read, before they read it. Every field costs time and
 * memory, and `new URLSearchParams('a&a&…')` takes quadratic time in Node 24.
 */
import { Failure } from '../errors.ts';

/** A query or a form may have this many fields. Node bounds the size of a query (16 KB for the whole head of a request). */
export const MAX_PAIRS = 256;
export const JSON_MAX_DEPTH = 64;

/** The pairs of a query or a form. Throws `invalid` when there are too many. */
export function parsePairs(text: string): URLSearchParams {
  checkPairs(text, 0);
  return new URLSearchParams(text);
}

/** Throws `invalid` when the query of `url` has too many pairs. */
export function checkQuery(url: string): void {
  const queryAt = url.indexOf('?');
  if (queryAt !== -1) checkPairs(url, queryAt);
}

function checkPairs(text: string, from: number): void {
  let count = 1;
  for (let at = text.indexOf('&', from); at !== -1; at = text.indexOf('&', at + 1)) {
    count++;
    if (count > MAX_PAIRS)
      throw new Failure('invalid', `Cannot read the request: it must have at most ${MAX_PAIRS} parameters`);
  }
}

/** Undefined if the text is not JSON. Throws `invalid` when it is nested too deeply. */
export function parseJson(text: string): unknown {
  if (isNestedDeeperThan(text, JSON_MAX_DEPTH)) throw refuseNesting();
  return parseFlatJson(text);
}

function parseFlatJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function refuseNesting(): Failure {
  return new Failure('invalid', `Cannot read the request: its JSON must be nested at most ${JSON_MAX_DEPTH} levels`);
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Brackets inside of strings do not count. */
export function isNestedDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = findStringEnd(text, index);
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth++;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--;
    if (depth > limit) return true;
  }
  return false;
}

/** Where the string that starts at `start` ends: the first quote after an even number of backslashes. */
export function findStringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 0) return end;
  }
  return text.length;
}
