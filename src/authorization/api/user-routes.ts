/** Serves `GET /api/v5/user` with GitCode's fields, and mounts the caller's tokens and applications. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { type Call, type Endpoint, type Reply, replyJson } from '../../http/endpoint.ts';
import type { RouteMount } from '../../http/mount.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../../http/scope-middleware.ts';
import type { VerifyToken } from '../../identity.ts';
import { findUserById, type User } from '../accounts/user-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { identifyFor } from '../tokens/require-scope.ts';
import { addApplicationRoutes } from './application-routes.ts';
import { addPersonalTokenRoutes } from './personal-token-routes.ts';

const userSchema = z
  .object({
    id: z.string(),
    login: z.string(),
    name: z.string(),
    email: z.string().nullable().openapi({ description: 'Only if it is verified; otherwise null' }),
    email_verified: z.boolean(),
    type: z.literal('User'),
    avatar_url: z.string(),
    html_url: z.string(),
    url: z.string(),
    followers_url: z.string(),
    bio: z.string(),
    blog: z.string(),
    company: z.string(),
    location: z.string(),
    followers: z.int(),
    following: z.int(),
    top_languages: z.array(z.string()),
  })
  .openapi('User');

/** Authenticates callers. */
export interface Guard {
  readonly verifyToken: VerifyToken;
  readonly requireScope: RequireScope;
}

export function createUserMount(dependencies: ProtocolDependencies, guard: Guard): RouteMount {
  const routes = createRoutes<IdentityEnv>();
  routes.openAPIRegistry.registerPath({
    method: 'get',
    path: '/',
    summary: 'The user of the token',
    tags: ['User'],
    responses: { 200: { description: 'The user', content: { 'application/json': { schema: userSchema } } } },
  });
  addPersonalTokenRoutes(routes, dependencies, guard.requireScope);
  addApplicationRoutes({ routes, dependencies, requireScope: guard.requireScope });
  const endpoints: Endpoint[] = [
    { method: 'GET', path: '/', answer: (call) => answerUserRequest(dependencies, call, guard.verifyToken) },
  ];
  return {
    path: '/api/v5/user',
    errors: 'platform',
    routes: routes as unknown as RouteMount['routes'],
    endpoints,
  };
}

async function answerUserRequest(
  dependencies: ProtocolDependencies,
  call: Call,
  verifyToken: VerifyToken,
): Promise<Reply> {
  const { userId } = await identifyFor('all_user', call, verifyToken);
  const user = await findUserById(dependencies.store, userId);
  if (user === undefined) throw new Failure('forbidden', 'Forbidden: this token belongs to no user');
  return replyJson(formatUser(dependencies, user));
}

/**
 * A field that this service does not have is empty, never absent, because clients of GitCode read it. The URLs lead to pages
 * that exist: there are no public profiles and no followers here.
 */
function formatUser({ baseUrl, issuer }: ProtocolDependencies, user: User): z.infer<typeof userSchema> {
  return {
    id: user.id,
    login: user.login,
    name: user.name,
    email: user.isEmailVerified ? user.email : null,
    email_verified: user.isEmailVerified,
    type: 'User',
    avatar_url: '',
    html_url: `${issuer}/account`,
    url: `${baseUrl}/api/v5/user`,
    followers_url: '',
    bio: '',
    blog: '',
    company: '',
    location: '',
    followers: 0,
    following: 0,
    top_languages: [],
  };
}
