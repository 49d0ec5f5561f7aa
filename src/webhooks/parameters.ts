/** The platform takes parameters from the query, a form or JSON alike: here they become one record before any schema. */

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../errors.ts';

export type Parameters = Readonly<Record<string, unknown>>;

/** The body wins over the query. */
export async function readParameters(c: Context): Promise<Parameters> {
  return dropAbsent({ ...c.req.query(), ...(await readBody(c)) });
}

/** JSON nulls and empty fields count as not given. */
export function dropAbsent(values: Parameters): Parameters {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== ''));
}

async function readBody(c: Context): Promise<Parameters> {
  const type = c.req.header('content-type') ?? '';
  if (type.startsWith('multipart/form-data')) return await c.req.parseBody();
  const body = await c.req.text();
  if (body.trim() === '') return {};
  if (isJson(type) || body.trimStart().startsWith('{')) return parseJsonObject(body, type);
  return Object.fromEntries(new URLSearchParams(body));
}

function isJson(type: string): boolean {
  return /^application\/(.+\+)?json\b/i.test(type);
}

export function parseJsonObject(body: string, type: string): Parameters {
  const value = tryParseJson(body);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Parameters;
  const shown = type === '' ? 'application/json' : type.slice(0, 100);
  throw new Failure('invalid', `Request body parsing error, please check if the header content-type:${shown} matches`);
}

function tryParseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** `action` completes "Cannot …". A required parameter that is missing has the platform's own code for that. */
export function parseParameters<S extends z.ZodType>(schema: S, values: Parameters, action: string): z.output<S> {
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = issue?.path ?? [];
  const field = path.join('.');
  const given = path.reduce<unknown>((value, key) => (value as Parameters | undefined)?.[key as string], values);
  if (given === undefined)
    throw new Failure('invalid', `Cannot ${action}: ${field} must not be blank`, { ...MISSING, field });
  const shown = SECRET_FIELDS.has(field) ? '' : `, got ${JSON.stringify(given)?.slice(0, 200)}`;
  throw new Failure('invalid', `Cannot ${action}: ${field} ${lowerFirst(issue?.message ?? 'is not valid')}${shown}`, {
    field,
  });
}

const MISSING = { errorCode: 1000, errorCodeName: 'PARAMETER_ERROR' };
const SECRET_FIELDS = new Set(['password', 'secret']);

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

const FLAG_WORDS: Record<string, boolean> = { true: true, false: false, '1': true, '0': false };

/** `true`, `false`, `1` and `0`, as a word, a number or a boolean. */
export const flagParameter = z
  .preprocess((value) => FLAG_WORDS[String(value).toLowerCase()] ?? value, z.boolean('must be true or false'))
  .openapi({ type: 'boolean' });

export function integerParameter(minimum: number, maximum: number) {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .preprocess(
      (value) => (typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value),
      z.int(message).min(minimum, message).max(maximum, message),
    )
    .openapi({ type: 'integer', minimum, maximum });
}
