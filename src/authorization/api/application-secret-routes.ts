/** Serves `/api/v5/user/applications/{client_id}/secrets`: adds a second secret, removes one of two. */
import { z } from '@hono/zod-openapi';
import { addSecret, removeSecret } from '../applications/application.ts';
import { clientAddress } from '../sign-in/read-client-address.ts';
import { PERSONAL_TOKEN_ONLY } from '../tokens/require-scope.ts';
import { type ApplicationApi, findOwn, ITEM_PATH, json, listManagingGuards, params, tags } from './own-application.ts';

const SECRETS_PATH = `${ITEM_PATH}/secrets`;

export function addSecretRoutes(api: ApplicationApi): void {
  addNewSecretRoute(api);
  addRemovalRoute(api);
}

function addNewSecretRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'post',
      path: SECRETS_PATH,
      summary: 'Add a second secret, to replace the first without downtime',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listManagingGuards(requireScope),
      request: { params },
      responses: { 201: { description: 'The secret, shown once', ...json(z.object({ client_secret: z.string() })) } },
    },
    async (c) => {
      const application = await findOwn(dependencies, c.get('identity'), c.req.valid('param').client_id);
      const actor = { userId: c.get('identity').userId, address: clientAddress(c) };
      const secret = await addSecret(dependencies.store, dependencies.world, { application, actor });
      return c.json({ client_secret: secret }, 201, { 'Cache-Control': 'no-store' });
    },
  );
}

function addRemovalRoute({ routes, dependencies, requireScope }: ApplicationApi): void {
  routes.openapi(
    {
      method: 'delete',
      path: `${SECRETS_PATH}/{slot}`,
      summary: 'Remove one of two secrets',
      description: PERSONAL_TOKEN_ONLY,
      tags,
      middleware: listManagingGuards(requireScope),
      request: { params: params.extend({ slot: z.coerce.number().int() }) },
      responses: { 204: { description: 'Removed' } },
    },
    async (c) => {
      const { client_id: clientId, slot } = c.req.valid('param');
      const application = await findOwn(dependencies, c.get('identity'), clientId);
      const actor = { userId: c.get('identity').userId, address: clientAddress(c) };
      await removeSecret(dependencies.store, dependencies.world, { application, slot, actor });
      return c.body(null, 204);
    },
  );
}
