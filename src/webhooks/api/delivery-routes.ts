/** Serves the delivery log of a hook, redelivery and replay. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { addressWith } from '../../http/page-headers.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv } from '../../http/scope-middleware.ts';
import type { Hook } from '../hooks/hook.ts';
import { deliveryDetailJson, deliveryJson, listedDeliveryJson } from '../management/delivery-json.ts';
import {
  listParameters,
  readDelivery,
  readDeliveryPage,
  replayParameters,
  replaySince,
  sendAgain,
  sendWaiting,
} from '../management/manage-delivery.ts';
import { findHook } from '../management/manage-hook.ts';
import type { ManagementDependencies, SendingDependencies } from '../management/management.ts';
import { parseId, readParameters, refuseParameters } from '../parameters/parameters.ts';
import { describeRoutes, hookPath, type RouteDocument } from './api-documents.ts';

const SCOPE = 'all_hook';
const HOOK = '/repos/:owner/:repo/hooks/:id';
const waitingJson = z.object({ waiting: z.int() }).openapi('SentWaitingOfHook');
const replayJson = z.object({ replayed: z.int() }).openapi('Replay');

type HookContext = Context<IdentityEnv>;

export function createDeliveryRoutes(
  dependencies: ManagementDependencies & SendingDependencies,
): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoutes(routes.openAPIRegistry, DOCUMENTS);
  addLog(routes, dependencies);
  addSendingAgain(routes, dependencies);
  return routes;
}

function addLog(routes: OpenAPIHono<IdentityEnv>, dependencies: ManagementDependencies): void {
  routes.get(`${HOOK}/deliveries`, dependencies.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, dependencies);
    const { deliveries, nextBefore } = await readDeliveryPage(dependencies, hook.id, await readParameters(c));
    if (nextBefore !== undefined) c.header('Link', linkToNext(c, nextBefore, dependencies.baseUrl));
    return c.json(deliveries);
  });
  routes.get(`${HOOK}/deliveries/:delivery_id`, dependencies.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, dependencies);
    await refuseParameters(c, 'read the delivery');
    return c.json(await readDelivery(dependencies, hook.id, c.req.param('delivery_id')));
  });
}

function addSendingAgain(
  routes: OpenAPIHono<IdentityEnv>,
  dependencies: ManagementDependencies & SendingDependencies,
): void {
  routes.post(`${HOOK}/deliveries/:delivery_id/redeliver`, dependencies.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, dependencies);
    await refuseParameters(c, 'send the delivery again');
    return c.json(await sendAgain(dependencies, hook, c.req.param('delivery_id')), 202);
  });
  routes.post(`${HOOK}/send-waiting`, dependencies.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, dependencies);
    await refuseParameters(c, 'send what waits');
    return c.json({ waiting: await sendWaiting(dependencies, hook) }, 202);
  });
  routes.post(`${HOOK}/replay`, dependencies.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, dependencies);
    return c.json({ replayed: await replaySince(dependencies, hook, await readParameters(c)) }, 202);
  });
}

/** The `Link` header (RFC 8288) to the next page, with the caller's other parameters. */
function linkToNext(c: HookContext, beforeId: number, baseUrl: string): string {
  const address = addressWith(c, baseUrl, (query) => {
    query.delete('page');
    query.set('before', String(beforeId));
  });
  return `<${address}>; rel="next"`;
}

async function locateHook(c: HookContext, dependencies: ManagementDependencies): Promise<Hook> {
  const { owner = '', repo = '' } = c.req.param();
  const id = parseId(c.req.param('id') ?? '', 'id');
  const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
  return (await findHook(dependencies, repository, id)).hook;
}

const tags = ['Deliveries'];
const deliveryPath = hookPath.extend({
  delivery_id: z.string().openapi({ description: 'The id, or the UUID that the receiver saw.' }),
});
const asJson = <S extends z.ZodType>(description: string, schema: S) => ({
  description,
  content: { 'application/json': { schema } },
});

const HOOK_PATH = '/repos/{owner}/{repo}/hooks/{id}';

const DOCUMENTS: readonly RouteDocument[] = [
  {
    method: 'get',
    path: `${HOOK_PATH}/deliveries`,
    summary: 'List the deliveries of a webhook',
    description: 'Newest first. The log is kept for 30 days. A parameter that is not listed here is refused.',
    tags,
    request: { params: hookPath, query: listParameters },
    responses: { 200: asJson('A page', z.array(listedDeliveryJson)) },
  },
  {
    method: 'get',
    path: `${HOOK_PATH}/deliveries/{delivery_id}`,
    summary: 'Read a delivery with every attempt',
    tags,
    request: { params: deliveryPath },
    responses: { 200: asJson('The delivery', deliveryDetailJson) },
  },
  {
    method: 'post',
    path: `${HOOK_PATH}/deliveries/{delivery_id}/redeliver`,
    summary: 'Send a delivery again',
    description: 'The same bytes and the same id, with a new schedule of attempts.',
    tags,
    request: { params: deliveryPath },
    responses: { 202: asJson('It will be sent', deliveryJson) },
  },
  {
    method: 'post',
    path: `${HOOK_PATH}/send-waiting`,
    summary: 'Send all waiting deliveries now',
    description:
      'Deliveries that wait for a retry are due now and get a new schedule of attempts. A pause of the webhook ends.',
    tags,
    request: { params: hookPath },
    responses: { 202: asJson('How many wait', waitingJson) },
  },
  {
    method: 'post',
    path: `${HOOK_PATH}/replay`,
    summary: 'Send permanently failed deliveries again',
    description: 'Deliveries created since then that are dead, blocked or expired.',
    tags,
    request: { params: hookPath, query: replayParameters },
    responses: { 202: asJson('How many will be sent', replayJson) },
  },
];
