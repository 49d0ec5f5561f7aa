/**
 * Reads the parameters of a protocol request, each name once. An empty value counts as absent; unknown names are ignored
 * (RFC 6749 §3.1, §3.2).
 */
import { isFailure } from '../../../errors.ts';
import type { Call } from '../../../http/endpoint.ts';
import { parseJson, parsePairs } from '../../../http/parser-limits.ts';
import { createOAuthFailure, refuseRepeatedParameter } from './oauth-error.ts';

export interface RequestParameters {
  readonly values: ReadonlyMap<string, string>;
  /** The parameters that came in the query, where a log can keep them. */
  readonly inQuery: ReadonlySet<string>;
}

/** RFC 8707 and RFC 8693 let these come more than once; nothing here reads them. */
export const REPEATABLE: ReadonlySet<string> = new Set(['resource', 'audience']);

export async function readParameters(call: Call): Promise<RequestParameters> {
  const values = new Map<string, string>();
  if (call.query !== '') addPairs(values, parsePairs(call.query));
  const inQuery = new Set(values.keys());
  addPairs(values, await readBody(call));
  return { values, inQuery };
}

function addPairs(values: Map<string, string>, pairs: Iterable<readonly [string, unknown]>): void {
  for (const [name, value] of pairs) {
    if (value === '' || value === null || REPEATABLE.has(name)) continue;
    if (typeof value !== 'string') throw createOAuthFailure('invalid_request', 'Every parameter must be a string');
    if (values.has(name)) throw refuseRepeatedParameter(name);
    if (hasForbiddenCharacter(value))
      throw createOAuthFailure('invalid_request', 'A parameter has a character that is not allowed');
    values.set(name, value);
  }
}

/** A control character can be in no value of ours, and a lone surrogate or NUL in no text column. */
function hasForbiddenCharacter(value: string): boolean {
  for (let index = 0; index < value.length; index++) if (value.charCodeAt(index) < 0x20) return true;
  return !value.isWellFormed();
}

async function readBody(call: Call): Promise<Iterable<readonly [string, unknown]>> {
  const type = (call.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/x-www-form-urlencoded' || type === 'multipart/form-data') return readForm(call);
  const text = await call.text();
  if (type === 'application/json') return readJson(text);
  if (text === '') return [];
  throw createOAuthFailure('invalid_request', 'The body must be a form or JSON');
}

function readJson(text: string): Iterable<readonly [string, unknown]> {
  if (text === '') return [];
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return Object.entries(value);
  throw createOAuthFailure('invalid_request', 'The body must be a JSON object');
}

async function readForm(call: Call): Promise<Iterable<readonly [string, unknown]>> {
  try {
    return await call.form();
  } catch (error) {
    throw isFailure(error) ? error : createOAuthFailure('invalid_request', 'The body must be a form');
  }
}

/** Throws `invalid_request` when it is missing. */
export function requireParameter(values: ReadonlyMap<string, string>, name: string): string {
  const value = values.get(name);
  if (value === undefined) throw createOAuthFailure('invalid_request', `The parameter ${name} is missing`);
  return value;
}
