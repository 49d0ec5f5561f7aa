/** Divides the input of an operation into path, query and body, and refuses fields that the operation does not have. */
import { z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { Failure } from '../errors.ts';
import { parseJson } from '../http/parser-limits.ts';
import type { IdentityEnv } from '../http/scope-middleware.ts';
import { type AnyOperation, listPathFields, sendsJson } from './operation.ts';

export const FILE_TYPE = 'application/octet-stream';
export const BYTES = z.any().openapi({ type: 'string', format: 'binary' });

export interface InputParts {
  readonly inPath: z.ZodObject;
  /** In the query or the body. */
  readonly rest: z.ZodObject;
}

export function divideInput({ input, path }: AnyOperation): InputParts {
  const names = listPathFields(path);
  const fields = Object.entries(input.shape as Record<string, z.ZodType>);
  const pick = (isInPath: boolean) =>
    z.object(Object.fromEntries(fields.filter(([name]) => names.includes(name) === isInPath)));
  return { inPath: pick(true), rest: pick(false).openapi({ additionalProperties: false }) };
}

export function describeRequest(operation: AnyOperation, { inPath: params, rest }: InputParts) {
  if (operation.takesFileOf !== undefined)
    return { params, query: rest, body: { required: true, content: { [FILE_TYPE]: { schema: BYTES } } } };
  if (!sendsJson(operation)) return { params, query: rest };
  if (listFields(rest).length === 0) return { params };
  const required = !rest.safeParse({}).success;
  return { params, body: { required, content: { 'application/json': { schema: rest } } } };
}

/** Middleware that bounds the nesting of a body as well. It stands behind the check of the caller. */
export function checkFields(operation: AnyOperation, { rest }: InputParts): MiddlewareHandler<IdentityEnv> {
  const fields = listFields(rest);
  return async (c, next) => {
    refuseUnknownFields(c.req.query(), sendsJson(operation) ? [] : fields);
    if (sendsJson(operation)) refuseUnknownFields(parseJson(await c.req.text()), fields);
    await next();
  };
}

/** The caller's token may come among the fields. */
const TOKEN_FIELD = 'access_token';

/** Throws for a field that has another name than those allowed: a misspelt one would be ignored without a word. */
export function refuseUnknownFields(input: unknown, allowed: readonly string[]): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return;
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const field = given.map(([name]) => name).find((name) => name !== TOKEN_FIELD && !allowed.includes(name));
  if (field === undefined) return;
  const choice = allowed.length === 0 ? 'none is allowed' : `allowed: ${allowed.join(', ')}`;
  throw new Failure(
    'invalid',
    `Cannot read the request: ${JSON.stringify(field.slice(0, 100))} is no field here, ${choice}`,
    { field },
  );
}

export function listFields({ shape }: z.ZodObject): string[] {
  return Object.keys(shape);
}
