/**
 * Reads the parameters of a protocol request, each name once. An empty value counts as absent. Unknown names are ignored, whatever
 * their values are (RFC 6749 §3.1, §3.2): some clients refresh by sending back the whole token response, with its numbers.
 */
import { isFailure } from '../../../errors.ts';
import type { Call } from '../../../http/endpoint.ts';
import { parseJson, parsePairs } from '../../../http/parser-limits.ts';
import { createOAuthFailure, refuseRepeatedParameter } from './oauth-error.ts';

/** The names of all parameters that an endpoint reads. */
const NAMES = [
  'grant_type',
  'client_id',
  'client_secret',
  'code',
  'code_verifier',
  'device_code',
  'redirect_uri',
  'refresh_token',
  'scope',
  'token',
] as const;

type ParameterName = (typeof NAMES)[number];

export type ParameterValues = ReadonlyMap<ParameterName, string>;

export interface RequestParameters {
  readonly values: ParameterValues;
  /** The parameters that were sent in the query, where a log can keep them. */
  readonly inQuery: ReadonlySet<ParameterName>;
}

const KNOWN: ReadonlySet<string> = new Set(NAMES);

function isKnown(name: string): name is ParameterName {
  return KNOWN.has(name);
}

export async function readParameters(call: Call): Promise<RequestParameters> {
  const values = new Map<ParameterName, string>();
  if (call.query !== '') addPairs(values, parsePairs(call.query));
  const inQuery = new Set(values.keys());
  addPairs(values, await readBody(call));
  return { values, inQuery };
}

function addPairs(values: Map<ParameterName, string>, pairs: Iterable<readonly [string, unknown]>): void {
  for (const [name, value] of pairs) {
    if (!isKnown(name) || value === '' || value === null) continue;
    if (typeof value !== 'string')
      throw createOAuthFailure('invalid_request', `The parameter ${name} must be a string`);
    if (values.has(name)) throw refuseRepeatedParameter(name);
    if (hasForbiddenCharacter(value))
      throw createOAuthFailure('invalid_request', `The parameter ${name} has a character that is not allowed`);
    values.set(name, value);
  }
}

/** No valid value has control characters, and no text column takes a lone surrogate or NUL. */
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

/** Throws `invalid_request` if the parameter is missing. */
export function requireParameter(values: ParameterValues, name: ParameterName): string {
  const value = values.get(name);
  if (value === undefined) throw createOAuthFailure('invalid_request', `The parameter ${name} is missing`);
  return value;
}
