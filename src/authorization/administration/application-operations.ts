/** Implements the operations on OAuth applications of all owners. */
import { z } from '@hono/zod-openapi';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import { type Actor, describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { textPage } from '../../operations/paging.ts';
import { findLogins } from '../accounts/user-store.ts';
import {
  addSecret,
  createApplication,
  deleteApplication,
  removeSecret,
  setApplicationDisabled,
} from '../applications/application.ts';
import { listSecrets } from '../applications/application-secret-store.ts';
import {
  type Application,
  findApplication,
  GRANT_TYPES,
  listAllApplications,
} from '../applications/application-store.ts';
import { findPerson, type PeopleDependencies } from './person.ts';

const about = { tag: 'All applications', scope: 'admin:applications' } as const;
const ofApplication = z.object({ clientId: z.string().min(1).max(100) });
const clientSecret = z.string().openapi({ description: 'The secret; no later response has it' });
const olderClientId = z
  .string()
  .openapi({ description: 'The same as `clientId`, in the spelling of earlier releases' });
const olderSecret = z
  .string()
  .openapi({ description: 'The same as `clientSecret`, in the spelling of earlier releases' });
const grantTypes = z
  .array(z.enum(GRANT_TYPES))
  .openapi({ description: 'The grants that it may use (RFC 6749 section 1.3)' });
const redirectUris = z.array(z.string()).openapi({
  description: 'Where people may be redirected: exactly these URIs, with any port on a loopback IP (RFC 8252)',
});
const authenticatedRefresh = z.boolean().openapi({ description: 'A refresh without client authentication is refused' });
const mayIntrospect = z.boolean().openapi({ description: 'A resource server: may ask about every token' });
const isPublic = z.boolean().openapi({ description: 'It has no secret and uses PKCE' });
const applicationSchema = z
  .object({
    clientId: z.string(),
    name: z.string(),
    ownerId: z.string().optional().openapi({ description: 'Absent: only administrators can change it' }),
    owner: z.string().optional().openapi({ description: 'The login of the owner, who may change the application' }),
    homepage: z.string(),
    description: z.string(),
    isPublic,
    redirectUris,
    grantTypes,
    authenticatedRefresh,
    mayIntrospect,
    secretInQueryAtMs: z.int().optional().openapi({
      description:
        'When it last sent its secret in a query string, where logs may keep it, to within a day; absent: never',
    }),
    disabledAtMs: z.int().optional(),
    createdAtMs: z.int(),
  })
  .openapi('AnyApplication');
const secretSchema = z.object({
  slot: z.int(),
  hint: z.string().openapi({ description: 'The last four characters' }),
  createdAtMs: z.int(),
  lastUsedAtMs: z.int().optional().openapi({ description: 'Absent: never used' }),
});
const done = ofApplication.openapi('ChangedApplication');

export type AnyApplication = z.infer<typeof applicationSchema>;

export const listApplications = describeOperation({
  ...about,
  name: 'listAllApplications',
  method: 'get',
  path: '/applications',
  summary: 'List all OAuth applications in the order of their client ids',
  input: z.object({
    ...textPage,
  }),
  output: z
    .object({
      applications: z.array(applicationSchema).openapi({ description: 'In the order of their client ids' }),
      next: z.string().nullable(),
    })
    .openapi('AllApplicationsPage'),
});
export const addApplication = describeOperation({
  ...about,
  name: 'createAnyApplication',
  method: 'post',
  path: '/applications',
  summary: 'Register an OAuth application; only this response has its secret',
  input: z.object({
    name: z.string().max(200),
    owner: z
      .string()
      .max(100)
      .optional()
      .openapi({ description: 'Login of the person who may change it; without one, only administrators may' }),
    homepage: z.string().max(2000).default(''),
    description: z.string().max(2000).default(''),
    redirectUris: redirectUris.default([]),
    isPublic: isPublic.default(false),
    grantTypes: grantTypes.optional(),
    authenticatedRefresh: authenticatedRefresh.default(false),
    mayIntrospect: mayIntrospect.default(false),
  }),
  output: ofApplication
    .extend({ clientSecret: clientSecret.optional(), client_id: olderClientId, client_secret: olderSecret.optional() })
    .openapi('RegisteredApplication'),
});
export const showApplication = describeOperation({
  ...about,
  name: 'showAnyApplication',
  method: 'get',
  path: '/applications/{clientId}',
  summary: 'Show an OAuth application, and when its secrets were made and used',
  input: ofApplication,
  output: applicationSchema.extend({ secrets: z.array(secretSchema) }).openapi('AnyApplicationInDetail'),
});
export const removeApplication = describeOperation({
  ...about,
  name: 'deleteAnyApplication',
  method: 'delete',
  path: '/applications/{clientId}',
  summary: 'Delete an OAuth application and every token it holds',
  input: ofApplication,
  output: done,
});
export const disableApplication = describeOperation({
  ...about,
  name: 'disableAnyApplication',
  method: 'post',
  path: '/applications/{clientId}/disable',
  summary: 'Stop an OAuth application and all its tokens, until it is enabled',
  input: ofApplication,
  output: done,
});
export const enableApplication = describeOperation({
  ...about,
  name: 'enableAnyApplication',
  method: 'post',
  path: '/applications/{clientId}/enable',
  summary: 'Let a disabled OAuth application work again',
  input: ofApplication,
  output: done,
});
export const addApplicationSecret = describeOperation({
  ...about,
  name: 'addAnyApplicationSecret',
  method: 'post',
  path: '/applications/{clientId}/secrets',
  summary: 'Add a second secret, to replace the first without downtime; only this response has it',
  input: ofApplication,
  output: ofApplication
    .extend({ clientSecret, client_id: olderClientId, client_secret: olderSecret })
    .openapi('NewApplicationSecret'),
});
export const removeApplicationSecret = describeOperation({
  ...about,
  name: 'removeAnyApplicationSecret',
  method: 'delete',
  path: '/applications/{clientId}/secrets/{slot}',
  summary: 'Remove one of two secrets',
  input: ofApplication.extend({ slot: z.coerce.number().int().min(1).max(2) }),
  output: ofApplication.extend({ slot: z.int() }).openapi('RemovedApplicationSecret'),
});

export function implementApplications(dependencies: PeopleDependencies): Implementation[] {
  const { store, world } = dependencies;
  return [
    implement(listApplications, async ({ after, limit }) => {
      const found = await listAllApplications(store, limit + 1, after);
      const applications = await describeAll(store, found.slice(0, limit));
      return { applications, next: found.length > limit ? (applications.at(-1)?.clientId ?? null) : null };
    }),
    implement(addApplication, (input, { actor }) => register(dependencies, actor, input)),
    implement(showApplication, async ({ clientId }) => {
      const [application] = await describeAll(store, [await requireApplication(store, clientId)]);
      return { ...application!, secrets: await listSecrets(store, clientId) };
    }),
    implement(removeApplication, async ({ clientId }, { actor }) => {
      await deleteApplication(store, world, { application: await requireApplication(store, clientId), actor });
      return { clientId };
    }),
    ...([[disableApplication, true] as const, [enableApplication, false] as const] as const).map(
      ([operation, isDisabled]) =>
        implement(operation, async ({ clientId }, { actor }) => {
          const application = await requireApplication(store, clientId);
          await setApplicationDisabled(store, world, { application, isDisabled, actor });
          return { clientId };
        }),
    ),
    implement(addApplicationSecret, async ({ clientId }, { actor }) => {
      const application = await requireApplication(store, clientId);
      return nameBothWays(clientId, await addSecret(store, world, { application, actor }));
    }),
    implement(removeApplicationSecret, async ({ clientId, slot }, { actor }) => {
      const application = await requireApplication(store, clientId);
      await removeSecret(store, world, { application, slot, actor });
      return { clientId, slot };
    }),
  ];
}

async function register(
  { store, world }: PeopleDependencies,
  actor: Actor,
  { owner, ...form }: z.output<typeof addApplication.input>,
) {
  const id = owner === undefined ? undefined : (await findPerson(store, owner)).id;
  const { application, clientSecret } = await createApplication(store, world, { form, actor, owner: { id } });
  return nameBothWays(application.clientId, clientSecret);
}

/** Names both fields in camel case, as this API does, and in the spelling of OAuth, as earlier releases did. */
function nameBothWays<Secret extends string | undefined>(clientId: string, clientSecret: Secret) {
  return { clientId, clientSecret, client_id: clientId, client_secret: clientSecret };
}

/** Describes the applications with the logins of their owners. */
async function describeAll(store: Store, applications: readonly Application[]): Promise<AnyApplication[]> {
  const logins = await findLogins(
    store,
    applications.map(({ ownerId }) => ownerId),
  );
  return applications.map((application) => ({
    ...application,
    owner: application.ownerId === undefined ? undefined : logins.get(application.ownerId),
    redirectUris: [...application.redirectUris],
    grantTypes: [...application.grantTypes],
  }));
}

async function requireApplication(store: Store, clientId: string): Promise<Application> {
  const application = await findApplication(store, clientId);
  if (application !== undefined) return application;
  throw new Failure('not_found', `Cannot find an application with the client id "${clientId}"`);
}
