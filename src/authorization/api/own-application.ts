/** Finds an application of the caller for the routes of `/api/v5/user/applications`. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { limitFields } from '../../http/body/limit-body.ts';
import type { IdentityEnv, RequireScope } from '../../http/scope-middleware.ts';
import type { Identity } from '../../identity.ts';
import { type Application, findApplication } from '../applications/application-store.ts';
import type { ProtocolDependencies } from '../tokens/protocol-dependencies.ts';
import { requirePersonalToken } from '../tokens/require-scope.ts';

export interface ApplicationApi {
  readonly routes: OpenAPIHono<IdentityEnv>;
  readonly dependencies: ProtocolDependencies;
  readonly requireScope: RequireScope;
}

export const PATH = '/applications';
export const ITEM_PATH = `${PATH}/{client_id}`;
export const tags = ['User'];
export const params = z.object({ client_id: z.string().max(100) });
export const json = <T extends z.ZodType>(schema: T) => ({ content: { 'application/json': { schema } } });

/** The checks before a read: the scope, and a personal token. */
export function listReadingGuards(requireScope: RequireScope) {
  return [requireScope('all_user'), requirePersonalToken];
}

/** The checks before a change: those before a read, and a limit on the number of fields. */
export function listManagingGuards(requireScope: RequireScope) {
  return [...listReadingGuards(requireScope), limitFields];
}

/** Throws `not_found` for another person's application, as for an unknown one. */
export async function findOwn(
  dependencies: ProtocolDependencies,
  identity: Identity,
  clientId: string,
): Promise<Application> {
  const application = await findApplication(dependencies.store, clientId);
  if (application !== undefined && application.ownerId === identity.userId) return application;
  throw new Failure('not_found', `Application not found: ${clientId}`);
}
