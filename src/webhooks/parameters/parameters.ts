/** Reads the parameters of an API call from query, form or JSON, and names the invalid one. */

import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import { type Fields, readBodyFields } from '../../http/body-fields.ts';
import { toCall } from '../../http/endpoint.ts';

export type Parameters = Fields;

/** Parameters in the body override those in the query. */
export async function readParameters(c: Context): Promise<Parameters> {
  return dropAbsent({ ...c.req.query(), ...(await readBodyFields(toCall(c))) });
}

/** JSON nulls and empty fields count as not given. */
export function dropAbsent(values: Parameters): Parameters {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== ''));
}

/** `action` completes "Cannot …". A missing required parameter has the error code that GitCode uses. */
export function parseParameters<S extends z.ZodType>(schema: S, values: Parameters, action: string): z.output<S> {
  const parsed = schema.safeParse(values, { error: describeIssue });
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

/** Parses like `parseParameters`, and refuses unknown parameters: an ignored filter would give a wrong answer. */
export function parseKnownParameters<S extends z.ZodObject>(
  schema: S,
  values: Parameters,
  action: string,
): z.output<S> {
  const allowed = Object.keys(schema.shape);
  const field = Object.keys(values).find((name) => name !== 'access_token' && !allowed.includes(name));
  if (field === undefined) return parseParameters(schema, values, action);
  const shown = JSON.stringify(field.slice(0, 100));
  const choice = allowed.length === 0 ? 'no parameter is allowed' : `allowed: ${allowed.join(', ')}`;
  throw new Failure('invalid', `Cannot ${action}: ${shown} is no parameter here, ${choice}`, { field });
}

/** Throws if a call without parameters has any. */
export async function refuseParameters(c: Context, action: string): Promise<void> {
  parseKnownParameters(NO_PARAMETERS, await readParameters(c), action);
}

const NO_PARAMETERS = z.object({});
const MISSING = { errorCode: 1000, errorCodeName: 'PARAMETER_ERROR' };
const SECRET_FIELDS = new Set(['password', 'secret']);

const NAME_OF_TYPE: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

/** The message for a rule that has none of its own. */
function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${NAME_OF_TYPE[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`;
  if (issue.code === 'invalid_union' && Array.isArray(issue.options))
    return `must be one of ${issue.options.join(', ')}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${UNIT_OF[issue.origin] ?? ''}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}${UNIT_OF[issue.origin] ?? ''}`;
  return undefined;
}

const UNIT_OF: Readonly<Record<string, string>> = { string: ' characters', array: ' items' };

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

const FLAG_WORDS = new Map<unknown, boolean>([
  ['true', true],
  ['1', true],
  [1, true],
  ['false', false],
  ['0', false],
  [0, false],
]);

/** Accepts `true`, `false`, `1` and `0`, as text, number or boolean. */
export const flagParameter = z
  .preprocess(
    (value) => FLAG_WORDS.get(typeof value === 'string' ? value.toLowerCase() : value) ?? value,
    z.boolean('must be true or false'),
  )
  .openapi({ type: 'boolean' });

export function integerParameter(minimum: number, maximum: number) {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .preprocess(
      (value) => (typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value),
      z.int(message).min(minimum, message).max(maximum, message),
    )
    .openapi({ type: 'integer', minimum, maximum });
}

/**
 * Describes a whole number that may be left out. The OpenAPI document is given the type of an integer, and shows a default only if it
 * is given that too.
 */
export function presetParameter(minimum: number, maximum: number, preset: number) {
  return integerParameter(minimum, maximum).default(preset).openapi({ default: preset });
}

/** Parses a number in a path. `field` is its name, and `allowed` describes the accepted values. */
export function parseId(text: string, field: string, allowed = 'a whole number'): number {
  if (/^\d{1,15}$|^[1-8]\d{15}$/.test(text)) return Number(text);
  throw new Failure('invalid', `Parameter type error: ${field} must be ${allowed}, got "${text.slice(0, 100)}"`, {
    field,
  });
}
