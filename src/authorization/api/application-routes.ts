/** Serves `/api/v5/user/applications`: the OAuth applications that the caller registered. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import type { Identity } from '../../identity.ts';
import { createApplication, deleteApplication, updateApplication } from '../applications/application.ts';
import { listSecrets } from '../applications/application-secret-store.ts';
import { type Application, listApplications } from '../applications/application-store.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { PERSONAL_TOKEN_ONLY } from '../tokens/require-scope.ts';
import { addSecretRoutes } from './application-secret-routes.ts';
import { listPageSchema, takePage } from './list-page.ts';
import {
  type ApplicationApi,
  findOwn,
  ITEM_PATH,
  json,
  listManagingGuards,
  listReadingGuards,
  PATH,
  params,
  tags,
} from './own-application.ts';

const grantType = z.enum(['authorization_code', 'refresh_token', 'client_credentials', 'device_code']);

const applicationSchema = z
  .object({
    client_id: z.string(),
    name: z.string(),
    homepage: z.string(),
    description: z.string(),
    redirect_uris: z.array(z.string()),
    public: z.boolean(),
    grant_types: z.array(grantType),
    authenticated_refresh: z.boolean(),
    secret_seen_in_query_at: z.string().nullable(),
    created_at: z.string(),
  })
  .openapi('Application');

const secretSchema = z.object({
  slot: z.int(),
  hint: z.string(),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
});

const changeSchema = z.object({
  name: z.string().optional(),
  homepage: z.string().optional(),
  description: z.string().optional(),
  redirect_uris: z.array(z.string()).optional(),
  grant_types: z.array(grantType).optional(),
  authenticated_refresh: z.boolean().optional(),
});

const formSchema = changeSchema.extend({ name: z.string(), public: z.boolean().optional() });

type ChangeBody = z.infer<typeof changeSchema>;

export function addApplicationRoutes(api: ApplicationApi): void {
  addListRoute(api);
  addRegisterRoute(api);
  addReadRoute(api);
  addChangeRoute(api);
  addDeleteRoute(api);
  addSecretRoutes(api);
}

function addListRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'get',
      path: PATH,
      summary: "List the caller's OAuth applications",
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listReadingGuards(requireScope),
      request: { query: listPageSchema },
      responses: { 200: { description: 'Newest first', ...json(z.array(applicationSchema)) } },
    },
    async (c) => {
      const applications = await listApplications(dependencies.store, c.get('identity').userId);
      const some = takePage(c, applications, { query: c.req.valid('query'), baseUrl: dependencies.baseUrl });
      return c.json(some.map(formatApplication), 200);
    },
  );
}

function addRegisterRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'post',
      path: PATH,
      summary: 'Register an OAuth application; only this response has its secret',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listManagingGuards(requireScope),
      request: { body: { required: true, ...json(formSchema) } },
      responses: {
        201: {
          description: 'The application',
          ...json(applicationSchema.extend({ client_secret: z.string().optional() })),
        },
      },
    },
    async (c) => {
      const body = c.req.valid('json');
      const { homepage = '', description = '', redirectUris = [], ...others } = toChange(body);
      const form = { ...others, name: body.name, homepage, description, redirectUris, isPublic: body.public ?? false };
      const actor = { userId: requirePerson(c.get('identity')), address: clientAddress(c) };
      const { application, clientSecret } = await createApplication(dependencies.store, dependencies.world, {
        form,
        actor,
      });
      const secret = clientSecret === undefined ? {} : { client_secret: clientSecret };
      return c.json({ ...formatApplication(application), ...secret }, 201, { 'Cache-Control': 'no-store' });
    },
  );
}

function addReadRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'get',
      path: ITEM_PATH,
      summary: 'One OAuth application with its secrets, which show their last four characters',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listReadingGuards(requireScope),
      request: { params },
      responses: {
        200: { description: 'The application', ...json(applicationSchema.extend({ secrets: z.array(secretSchema) })) },
      },
    },
    async (c) => {
      const application = await findOwn(dependencies, c.get('identity'), c.req.valid('param').client_id);
      const secrets = await listSecrets(dependencies.store, application.clientId);
      return c.json({ ...formatApplication(application), secrets: secrets.map(formatSecret) }, 200);
    },
  );
}

function addChangeRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'patch',
      path: ITEM_PATH,
      summary: 'Change an OAuth application',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listManagingGuards(requireScope),
      request: { params, body: { required: true, ...json(changeSchema) } },
      responses: { 200: { description: 'The application', ...json(applicationSchema) } },
    },
    async (c) => {
      const application = await findOwn(dependencies, c.get('identity'), c.req.valid('param').client_id);
      const change = toChange(c.req.valid('json'));
      const actor = { userId: c.get('identity').userId, address: clientAddress(c) };
      const updated = await updateApplication(dependencies.store, dependencies.world, { application, change, actor });
      return c.json(formatApplication(updated), 200);
    },
  );
}

function addDeleteRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'delete',
      path: ITEM_PATH,
      summary: 'Delete an OAuth application and every token it holds',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listManagingGuards(requireScope),
      request: { params },
      responses: { 204: { description: 'Deleted' } },
    },
    async (c) => {
      const application = await findOwn(dependencies, c.get('identity'), c.req.valid('param').client_id);
      const actor = { userId: c.get('identity').userId, address: clientAddress(c) };
      await deleteApplication(dependencies.store, dependencies.world, { application, actor });
      return c.body(null, 204);
    },
  );
}

/** Returns the id of the person. Throws `forbidden` for an application that acts for itself: it cannot own others. */
function requirePerson({ userId, clientId }: Identity): string {
  if (userId !== clientId) return userId;
  throw new Failure('forbidden', 'Forbidden: this token belongs to no user');
}

/** The fields of the request that were sent. */
function toChange(body: ChangeBody) {
  const { name, homepage, description, redirect_uris: redirectUris, grant_types: grantTypes } = body;
  return { name, homepage, description, redirectUris, grantTypes, authenticatedRefresh: body.authenticated_refresh };
}

function formatApplication(application: Application): z.infer<typeof applicationSchema> {
  return {
    client_id: application.clientId,
    name: application.name,
    homepage: application.homepage,
    description: application.description,
    redirect_uris: [...application.redirectUris],
    public: application.isPublic,
    grant_types: [...application.grantTypes],
    authenticated_refresh: application.authenticatedRefresh,
    secret_seen_in_query_at: formatTime(application.secretInQueryAtMs),
    created_at: new Date(application.createdAtMs).toISOString(),
  };
}

function formatSecret(secret: Awaited<ReturnType<typeof listSecrets>>[number]): z.infer<typeof secretSchema> {
  const { slot, hint, createdAtMs, lastUsedAtMs } = secret;
  return { slot, hint, created_at: new Date(createdAtMs).toISOString(), last_used_at: formatTime(lastUsedAtMs) };
}

function formatTime(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
