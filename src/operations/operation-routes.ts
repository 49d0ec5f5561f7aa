/** Serves operations over HTTP: checks the caller's scope, then the input by its schema. Refusals are RFC 9457 problems. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import type { RouteMount } from '../http/mount.ts';
import { requireToken } from '../http/openapi/api-descriptions.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../http/scope-middleware.ts';
import { type AnyOperation, type Implementation, OPERATIONS_PATH, sendsJson } from './operation.ts';
import { BYTES, checkFields, describeRequest, divideInput, FILE_TYPE, type InputParts } from './operation-input.ts';
import { readActor } from './read-actor.ts';

/** One mount for all operations, and one for each operation with a file, since files may be larger than other bodies. */
export function mountOperations(implementations: readonly Implementation[], requireScope: RequireScope): RouteMount[] {
  const large = implementations.filter(({ operation }) => operation.takesFileOf !== undefined);
  const others = implementations.filter(({ operation }) => operation.takesFileOf === undefined);
  return [
    ...large.map((one) => ({
      ...mount(OPERATIONS_PATH + one.operation.path, [one], { requireScope, pathOf: () => '/' }),
      maxBodyBytes: one.operation.takesFileOf,
    })),
    mount(OPERATIONS_PATH, others, { requireScope, pathOf: ({ path }) => path }),
  ];
}

interface MountOptions {
  readonly requireScope: RequireScope;
  readonly pathOf: (operation: AnyOperation) => string;
}

function mount(
  path: string,
  implementations: readonly Implementation[],
  { requireScope, pathOf }: MountOptions,
): RouteMount {
  const routes = createRoutes<IdentityEnv>();
  for (const one of implementations) addRoute(routes, one, { path: pathOf(one.operation), requireScope });
  return { path, errors: 'problem', routes: routes as unknown as RouteMount['routes'] };
}

function addRoute(
  routes: OpenAPIHono<IdentityEnv>,
  { operation, handle, admit }: Implementation,
  { path, requireScope }: { readonly path: string; readonly requireScope: RequireScope },
): void {
  const { method, name, tag, summary, scope, givesFile } = operation;
  const description = `Takes a token with the scope ${scope}, or a wider one.`;
  const parts = divideInput(operation);
  const route = {
    method,
    path,
    operationId: name,
    tags: [tag],
    summary,
    description,
    security: requireToken(scope).map((one) => ({ ...one })) as Record<string, string[]>[],
    middleware: [requireScope(scope), admitBody(admit), checkFields(operation, parts)],
    request: describeRequest(operation, parts),
    responses: { 200: describeAnswer(operation), default: PROBLEM },
  };
  routes.openapi(route, async (c) => {
    const file = operation.takesFileOf === undefined ? new Uint8Array() : new Uint8Array(await c.req.arrayBuffer());
    const context = { actor: readActor(c), file, releaseBody: c.get('releaseBody') };
    const answer: unknown = await handle(readInput(c, operation, parts), context);
    c.header('Cache-Control', 'no-store');
    if (givesFile) return c.body(answer as Uint8Array<ArrayBuffer>, 200, { 'Content-Type': FILE_TYPE });
    return c.json(answer as object, 200);
  });
}

function admitBody(admit: Implementation['admit']): MiddlewareHandler<IdentityEnv> {
  return async (c, next) => {
    const bodyBytes = Number(c.req.header('content-length') ?? 0);
    if (c.get('releaseBody') !== undefined) await admit?.({ path: c.req.param(), actor: readActor(c), bodyBytes });
    await next();
  };
}

/** RFC 9457. */
const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    field: z.string().optional(),
    retryAfterSeconds: z.int().optional(),
    traceId: z.string(),
  })
  .openapi('Problem');

const PROBLEM = {
  description: 'Refused',
  content: { 'application/problem+json': { schema: problemSchema } },
};

function describeAnswer({ output, givesFile }: AnyOperation) {
  if (givesFile) return { description: 'The file', content: { [FILE_TYPE]: { schema: BYTES } } };
  return { description: 'Done', content: { 'application/json': { schema: output as z.ZodType } } };
}

function readInput(c: Context<IdentityEnv>, operation: AnyOperation, { rest }: InputParts): object {
  const { req } = c as unknown as { req: { valid(target: string): object } };
  // Where the body may be absent, its defaults are missing with it.
  const isAbsent = sendsJson(operation) && c.req.header('content-type') === undefined;
  return { ...(isAbsent ? rest.parse({}) : req.valid(sendsJson(operation) ? 'json' : 'query')), ...req.valid('param') };
}
