/** Serves operations over HTTP: checks the caller's scope, then the input by its schema. Refusals are RFC 9457 problems. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { RouteMount } from '../http/mount.ts';
import { requireToken } from '../http/openapi/api-descriptions.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../http/scope-middleware.ts';
import { type AnyOperation, type Implementation, OPERATIONS_PATH } from './operation.ts';
import { BYTES, describeRequest, divideInput, FILE_TYPE, readInput } from './operation-input.ts';
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
  routes.openAPIRegistry.registerPath({
    method,
    path,
    operationId: name,
    tags: [tag],
    summary,
    description,
    security: requireToken(scope).map((one) => ({ ...one })) as Record<string, string[]>[],
    request: describeRequest(operation, parts),
    responses: { 200: describeAnswer(operation), default: PROBLEM },
  });
  // Validators of the routes are not used: they would parse a body a second time.
  routes.on(method, toPattern(path), requireScope(scope), admitBody(admit), async (c) => {
    const input = await readInput(c, operation, parts);
    const file = operation.takesFileOf === undefined ? new Uint8Array() : new Uint8Array(await c.req.arrayBuffer());
    const context = { actor: readActor(c), file, releaseBody: c.get('releaseBody') };
    const answer: unknown = await handle(input, context);
    c.header('Cache-Control', 'no-store');
    if (givesFile) return c.body(answer as Uint8Array<ArrayBuffer>, 200, { 'Content-Type': FILE_TYPE });
    return c.json(answer as object, 200);
  });
}

function toPattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
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
