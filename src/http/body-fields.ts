/**
 * Reads a request body as named fields: JSON when it begins with a brace, otherwise a form. The content type is ignored:
 * `curl -d '{…}'` declares JSON as a form. The body stays readable, so after a reader that looks for a token the handler can read it.
 */
import { Failure, isFailure } from '../errors.ts';
import type { Call } from './endpoint.ts';
import { parseJson, parsePairs } from './parser-limits.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Throws `invalid` for a body that is malformed for its type. */
export async function readBodyFields(call: Pick<Call, 'header' | 'text' | 'form'>): Promise<Fields> {
  const type = call.header('content-type') ?? '';
  if (/^multipart\/form-data\b/i.test(type)) return await readMultipart(call, type);
  const body = await call.text();
  if (body.trim() === '') return {};
  if (isJson(type) || body.trimStart().startsWith('{')) return parseJsonObject(body, type);
  return Object.fromEntries(parsePairs(body));
}

/** Whether a body of this type has fields, and is not a file upload. */
export function mayHoldFields(type: string): boolean {
  return (
    type === '' ||
    isJson(type) ||
    /^(multipart\/form-data|application\/x-www-form-urlencoded|text\/plain)\b/i.test(type)
  );
}

export function parseJsonObject(body: string, type: string): Fields {
  const value = parseJson(body);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw refuseBody(type === '' ? 'application/json' : type);
}

function isJson(type: string): boolean {
  return /^application\/(.+\+)?json\b/i.test(type);
}

async function readMultipart(call: Pick<Call, 'form'>, type: string): Promise<Fields> {
  try {
    return Object.fromEntries(await call.form());
  } catch (error) {
    throw isFailure(error) ? error : refuseBody(type);
  }
}

function refuseBody(type: string): Failure {
  const shown = type.slice(0, 100);
  return new Failure('invalid', `Request body parsing error, please check if the header content-type:${shown} matches`);
}
