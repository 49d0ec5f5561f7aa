/** `GET /api/v5/user` with the platform's fields, and the caller's personal tokens and applications. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../errors.ts';
import type { RouteMount } from '../http/mount.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../identity.ts';
import { addApplicationRoutes } from './application-routes.ts';
import type { ProtocolParts } from './parts.ts';
import { addPersonalTokenRoutes } from './personal-token-routes.ts';
import { findUserById, type User } from './user-store.ts';

const userSchema = z
  .object({
    id: z.string(),
    login: z.string(),
    name: z.string(),
    email: z.string().nullable(),
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

export function createUserMount(parts: ProtocolParts, requireScope: RequireScope): RouteMount {
  const routes = createRoutes<IdentityEnv>();
  routes.openapi(
    {
      method: 'get',
      path: '/',
      summary: 'The user a token speaks for',
      tags: ['User'],
      middleware: requireScope('all_user'),
      responses: { 200: { description: 'The user', content: { 'application/json': { schema: userSchema } } } },
    },
    async (c) => {
      const user = await findUserById(parts.store, c.get('identity').userId);
      if (user === undefined) throw new Failure('forbidden', 'Forbidden: this token speaks for no user');
      return c.json(formatUser(parts, user), 200);
    },
  );
  addPersonalTokenRoutes(routes, parts, requireScope);
  addApplicationRoutes(routes, parts, requireScope);
  return { path: '/api/v5/user', errors: 'platform', routes: routes as unknown as RouteMount['routes'] };
}

/** What this service does not know of a person is empty, never absent: clients of the platform read these fields. */
function formatUser({ baseUrl, issuer }: ProtocolParts, user: User): z.infer<typeof userSchema> {
  const url = `${baseUrl}/api/v5/users/${user.login}`;
  return {
    id: user.id,
    login: user.login,
    name: user.name,
    email: user.email,
    type: 'User',
    avatar_url: '',
    html_url: `${issuer}/${user.login}`,
    url,
    followers_url: `${url}/followers`,
    bio: '',
    blog: '',
    company: '',
    location: '',
    followers: 0,
    following: 0,
    top_languages: [],
  };
}
