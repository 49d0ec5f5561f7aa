/** Divides the input of an operation into path, query and body, and refuses fields that the operation does not have. */
import { z } from '@hono/zod-openapi';
import type { Context, HonoRequest } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { Failure } from '../errors.ts';
import { parseJson } from '../http/parser-limits.ts';
import { describeInvalid } from '../http/routes.ts';
import { type AnyOperation, listPathFields, sendsJson } from './operation.ts';

export const FILE_TYPE = 'application/octet-stream';
export const BYTES = z.any().openapi({ type: 'string', format: 'binary' });
const JSON_TYPE = /^application\/([a-z-.]+\+)?json(;\s*[a-zA-Z0-9-]+=([^;]+))*$/i;

export interface InputParts {
  readonly inPath: z.ZodObject;
  /** The input in the query or the body. */
  readonly rest: z.ZodObject;
  /** The accepted fields there: `rest`, then those that are ignored. */
  readonly taken: z.ZodObject;
}

export function divideInput({ input, path, readAs }: AnyOperation): InputParts {
  const names = listPathFields(path);
  const fields = Object.entries(input.shape as Record<string, z.ZodType>);
  const pick = (isInPath: boolean) =>
    z.object(Object.fromEntries(fields.filter(([name]) => names.includes(name) === isInPath)));
  const rest = pick(false);
  const taken = rest.extend(ignoreOthers(rest, readAs)).openapi({ additionalProperties: false });
  return { inPath: pick(true), rest, taken };
}

const IGNORED = { readOnly: true, description: 'Taken as it was read, and ignored.' };

/** Returns the fields of `readAs` that `rest` does not have. */
function ignoreOthers({ shape }: z.ZodObject, readAs: z.ZodObject | undefined): Record<string, z.ZodType> {
  const others = Object.entries(readAs?.shape ?? {}).filter(([name]) => !(name in shape)) as [string, z.ZodType][];
  return Object.fromEntries(others.map(([name, field]) => [name, field.optional().openapi(IGNORED)]));
}

export function describeRequest(operation: AnyOperation, { inPath: params, rest, taken }: InputParts) {
  if (operation.takesFileOf !== undefined)
    return { params, query: rest, body: { required: true, content: { [FILE_TYPE]: { schema: BYTES } } } };
  if (!sendsJson(operation)) return { params, query: rest };
  if (listFields(rest).length === 0) return { params };
  const required = !rest.safeParse({}).success;
  return { params, body: { required, content: { 'application/json': { schema: taken } } } };
}

/** Reads the input of a request, and limits the nesting of a body. Must be called after the check of the caller. */
export async function readInput({ req }: Context, operation: AnyOperation, parts: InputParts): Promise<object> {
  const { inPath, rest, taken } = parts;
  if (!sendsJson(operation)) {
    refuseUnknownFields(req.query(), listFields(rest));
    return { ...parseFields('query', rest, readQuery(req)), ...parseFields('param', inPath, req.param()) };
  }
  refuseUnknownFields(req.query(), []);
  const text = await req.text();
  const body = parseJson(text);
  refuseUnknownFields(body, listFields(rest), listFields(taken));
  const path = parseFields('param', inPath, req.param());
  if (listFields(rest).length === 0) return path;
  return { ...parseFields('json', rest, chooseBody(req.header('content-type') ?? '', text, body)), ...path };
}

function parseFields(target: string, fields: z.ZodObject, input: unknown): object {
  const parsed = fields.safeParse(input);
  if (!parsed.success) throw describeInvalid(target, parsed.error);
  return parsed.data;
}

/** A field that occurs several times becomes a list, which its schema refuses. */
function readQuery(req: HonoRequest): object {
  const fields = Object.entries(req.queries());
  return Object.fromEntries(fields.map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
}

/** Without a body, all its fields are absent. */
function chooseBody(type: string, text: string, body: unknown): unknown {
  if (type === '' && text === '') return {};
  if (!JSON_TYPE.test(type)) throw new HTTPException(415, { message: 'Unsupported Media Type' });
  if (body === undefined) throw new HTTPException(400, { message: 'Malformed JSON in request body' });
  return body;
}

/** The caller's token may be among the fields. */
const TOKEN_FIELD = 'access_token';

/** Throws for an unknown field: a misspelt one would silently be ignored. The refusal names the allowed fields. */
export function refuseUnknownFields(input: unknown, allowed: readonly string[], taken = allowed): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return;
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const field = given.map(([name]) => name).find((name) => name !== TOKEN_FIELD && !taken.includes(name));
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
