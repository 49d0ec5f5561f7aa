/** Serves `/api/v5/user/access_tokens`: creates, lists and revokes the caller's personal access tokens. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { limitFields } from '../../http/body/limit-body.ts';
import type { IdentityEnv, RequireScope } from '../../http/scope-middleware.ts';
import type { Identity } from '../../identity.ts';
import { isScope } from '../applications/scope.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import {
  createPersonalToken,
  DEFAULT_PERSONAL_TOKEN_DAYS,
  decideExpiry,
  revokePersonalToken,
} from '../tokens/personal-token.ts';
import { listPersonalTokens, type PersonalToken } from '../tokens/personal-token-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { PERSONAL_TOKEN_ONLY, requirePersonalToken } from '../tokens/require-scope.ts';
import { listPageSchema, takePage } from './list-page.ts';

const tokenSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    scopes: z.array(z.string()),
    repositories: z.array(z.string()).nullable().openapi({ description: 'OWNER/NAME; null without a limit' }),
    hint: z.string().openapi({ description: 'The last four characters of the token' }),
    created_at: z.string(),
    expires_at: z.string().nullable(),
    last_used_at: z.string().nullable(),
  })
  .openapi('PersonalAccessToken');

const createdTokenSchema = tokenSchema.extend({
  token: z.string(),
  unknown_repositories: z.array(z.string()).openapi({
    description:
      'Those of `repositories` that do not exist, or are private and belong to others. The token reaches nothing there until they exist',
  }),
});

const newTokenSchema = z.object({
  name: z.string().min(1).max(100),
  scopes: z.array(z.string()).min(1),
  repositories: z
    .array(z.string())
    .optional()
    .openapi({ description: 'OWNER/NAME of the only repositories that the token reaches' }),
  expires_in_days: z
    .int()
    .min(1)
    .max(3650)
    .nullable()
    .optional()
    .openapi({
      description: `null for a token that does not expire; ${DEFAULT_PERSONAL_TOKEN_DAYS}, or less, when absent. It cannot outlive the token that creates it`,
    }),
});

const PATH = '/access_tokens';
const tags = ['User'];

export function addPersonalTokenRoutes(
  routes: Routes,
  dependencies: ProtocolDependencies,
  requireScope: RequireScope,
): void {
  const reading = [requireScope('all_user'), requirePersonalToken];
  const managing = [...reading, limitFields];
  addListRoute(routes, dependencies, reading);
  addCreateRoute(routes, dependencies, managing);
  addRevokeRoute(routes, dependencies, managing);
}

type Routes = OpenAPIHono<IdentityEnv>;
type Middleware = ReturnType<RequireScope>;

function addListRoute(routes: Routes, dependencies: ProtocolDependencies, middleware: Middleware[]): void {
  routes.openapi(
    {
      method: 'get',
      path: PATH,
      summary: "List the caller's personal access tokens",
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware,
      request: { query: listPageSchema },
      responses: {
        200: { description: 'Newest first', content: { 'application/json': { schema: z.array(tokenSchema) } } },
      },
    },
    async (c) => {
      const tokens = await listPersonalTokens(dependencies.store, c.get('identity').userId);
      const some = takePage(c, tokens, { query: c.req.valid('query'), baseUrl: dependencies.baseUrl });
      return c.json(some.map(formatToken), 200);
    },
  );
}

function addCreateRoute(routes: Routes, dependencies: ProtocolDependencies, middleware: Middleware[]): void {
  routes.openapi(
    {
      method: 'post',
      path: PATH,
      summary: 'Create a personal access token; only this response has its text',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware,
      request: { body: { required: true, content: { 'application/json': { schema: newTokenSchema } } } },
      responses: {
        201: {
          description: 'The token',
          content: { 'application/json': { schema: createdTokenSchema } },
        },
      },
    },
    async (c) => {
      const { name, scopes, repositories, expires_in_days: days } = c.req.valid('json');
      const identity = c.get('identity');
      // `requirePersonalToken` has ensured that there is a token id.
      const { userId, tokenId: parentId = '' } = identity;
      const created = await createPersonalToken(dependencies.store, dependencies.world, {
        userId,
        name,
        scopes: checkScopes(scopes, identity),
        repositories,
        findUnknownRepositories: dependencies.findUnknownRepositories,
        expiresAtMs: await decideExpiry(dependencies.store, dependencies.world, { userId, parentId, days }),
        parentId,
        address: clientAddress(c),
      });
      dependencies.countToken('issued', 'personal');
      const { token, secret, unknownRepositories } = created;
      const answer = { ...formatToken(token), token: secret, unknown_repositories: [...unknownRepositories] };
      return c.json(answer, 201, { 'Cache-Control': 'no-store' });
    },
  );
}

function addRevokeRoute(routes: Routes, dependencies: ProtocolDependencies, middleware: Middleware[]): void {
  routes.openapi(
    {
      method: 'delete',
      path: `${PATH}/{id}`,
      summary: 'Revoke a personal access token',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware,
      request: { params: z.object({ id: z.string().max(100) }) },
      responses: { 204: { description: 'Revoked' } },
    },
    async (c) => {
      const target = { userId: c.get('identity').userId, tokenId: c.req.valid('param').id };
      await revokePersonalToken(dependencies.store, dependencies.world, {
        ...target,
        address: clientAddress(c),
      });
      dependencies.countToken('revoked', 'personal');
      return c.body(null, 204);
    },
  );
}

/** A token can give a new token only scopes that it has; otherwise any token could gain every scope. */
function checkScopes(names: readonly string[], identity: Identity) {
  const unknown = names.find((name) => !isScope(name));
  if (unknown !== undefined)
    throw new Failure('invalid', `Cannot create the token: "${unknown}" is not a scope`, { field: 'scopes' });
  const missing = names.find((name) => !identity.scopes.includes(name));
  if (missing !== undefined)
    throw new Failure('forbidden', `Forbidden: a token without the scope ${missing} cannot give it`, {
      field: 'scopes',
    });
  return names.filter(isScope);
}

function formatToken(token: PersonalToken): z.infer<typeof tokenSchema> {
  return {
    id: token.tokenId,
    name: token.name,
    scopes: [...token.scopes],
    repositories: token.repositories === undefined ? null : [...token.repositories],
    hint: token.hint,
    created_at: new Date(token.createdAtMs).toISOString(),
    expires_at: formatTime(token.expiresAtMs),
    last_used_at: formatTime(token.lastUsedAtMs),
  };
}

function formatTime(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
