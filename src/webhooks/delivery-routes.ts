/** The delivery log of a hook, and sending again. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../errors.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv } from '../identity.ts';
import { hookPath } from './api-documents.ts';
import { decodeText } from './attempt-record.ts';
import { DELIVERY_STATES, type StoredState } from './delivery.ts';
import { deliveryDetailJson, deliveryJson, toAttemptJson, toDeliveryJson } from './delivery-json.ts';
import { findDelivery, isHeld, type LogFilter, listDeliveries, redeliver, replay } from './delivery-log-store.ts';
import { EVENT_KINDS, type EventKind } from './event-kind.ts';
import { findHook } from './manage-hook.ts';
import type { ManagementParts } from './management.ts';
import { integerParameter, parseParameters, readParameters } from './parameters.ts';

const SCOPE = 'all_hook';
const HOOK = '/repos/:owner/:repo/hooks/:id';

const time = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time with Z or an offset' })
  .transform((text) => Date.parse(text));

const listParameters = z.object({
  state: z.enum(DELIVERY_STATES, `must be one of ${DELIVERY_STATES.join(', ')}`).optional(),
  event: z.enum(EVENT_KINDS as [string, ...string[]], `must be one of ${EVENT_KINDS.join(', ')}`).optional(),
  since: time.optional(),
  until: time.optional(),
  before: integerParameter(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .openapi({ description: 'Only deliveries with a smaller id; the Link header has it for the next page.' }),
  per_page: integerParameter(1, 100).default(20),
});
const replayParameters = z.object({ since: time });
const replayJson = z.object({ replayed: z.int() }).openapi('Replay');

type HookContext = Context<IdentityEnv>;

export function createDeliveryRoutes(parts: ManagementParts): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoutes(routes.openAPIRegistry);
  addLog(routes, parts);
  addSendingAgain(routes, parts);
  return routes;
}

function addLog(routes: OpenAPIHono<IdentityEnv>, parts: ManagementParts): void {
  routes.get(`${HOOK}/deliveries`, parts.requireScope(SCOPE), async (c) => {
    const { id: hookId } = await locateHook(c, parts);
    const parameters = parseParameters(listParameters, await readParameters(c), 'list the deliveries');
    const isHookHeld = await isHeld(parts.store, hookId);
    const filter = describeFilter(hookId, parameters, isHookHeld);
    const found = filter === undefined ? [] : await listDeliveries(parts.store, filter);
    const page = found.slice(0, parameters.per_page);
    if (found.length > page.length) c.header('Link', linkToNext(c, page.at(-1)?.id ?? 0, parts.baseUrl));
    return c.json(page.map((delivery) => toDeliveryJson(delivery, isHookHeld)));
  });
  routes.get(`${HOOK}/deliveries/:delivery_id`, parts.requireScope(SCOPE), async (c) => {
    const { id: hookId } = await locateHook(c, parts);
    const found = await findDelivery(parts.store, hookId, readDeliveryId(c));
    if (found === undefined) throw refuseUnknownDelivery(c);
    return c.json({
      ...toDeliveryJson(found.delivery, await isHeld(parts.store, hookId)),
      request_body: decodeText(found.delivery.body),
      attempt_log: found.attempts.map(toAttemptJson),
    });
  });
}

function addSendingAgain(routes: OpenAPIHono<IdentityEnv>, parts: ManagementParts): void {
  routes.post(`${HOOK}/deliveries/:delivery_id/redeliver`, parts.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, parts);
    await parts.guard.checkTarget(hook.url);
    const id = readDeliveryId(c);
    const isThere = await redeliver(parts.store, hook.id, id, parts.world.nowMs());
    const found = isThere ? await findDelivery(parts.store, hook.id, id) : undefined;
    if (found === undefined) throw refuseUnknownDelivery(c);
    parts.pokeDeliveries();
    return c.json(toDeliveryJson(found.delivery, await isHeld(parts.store, hook.id)), 202);
  });
  routes.post(`${HOOK}/replay`, parts.requireScope(SCOPE), async (c) => {
    const hook = await locateHook(c, parts);
    const { since } = parseParameters(replayParameters, await readParameters(c), 'replay the deliveries');
    await parts.guard.checkTarget(hook.url);
    const replayed = await replay(parts.store, hook.id, since, parts.world.nowMs());
    parts.pokeDeliveries();
    return c.json({ replayed }, 202);
  });
}

/** Undefined when nothing can match: pending and held exclude each other. */
function describeFilter(
  hookId: number,
  parameters: z.output<typeof listParameters>,
  isHookHeld: boolean,
): LogFilter | undefined {
  const { state, event, since = 0, until = Number.MAX_SAFE_INTEGER, before = Number.MAX_SAFE_INTEGER } = parameters;
  if (state === (isHookHeld ? 'pending' : 'held')) return undefined;
  return {
    hookId,
    state: (state === 'held' ? 'pending' : state) as StoredState | undefined,
    eventKind: event as EventKind | undefined,
    sinceMs: since,
    untilMs: until,
    beforeId: before,
    limit: parameters.per_page + 1,
  };
}

/** RFC 8288, with the caller's other parameters but without its token. */
function linkToNext(c: HookContext, beforeId: number, baseUrl: string): string {
  const query = new URLSearchParams(c.req.query());
  query.delete('access_token');
  query.set('before', String(beforeId));
  return `<${baseUrl}${c.req.path}?${query.toString()}>; rel="next"`;
}

async function locateHook(c: HookContext, parts: ManagementParts): Promise<{ id: number; url: string }> {
  const { owner = '', repo = '' } = c.req.param();
  const id = parseId(c.req.param('id') ?? '', 'id');
  const repository = await parts.access.findAdministered(c.get('identity'), owner, repo);
  return (await findHook(parts, repository, id)).hook;
}

function readDeliveryId(c: HookContext): number {
  return parseId(c.req.param('delivery_id') ?? '', 'delivery_id');
}

function parseId(text: string, field: string): number {
  if (/^\d{1,15}$|^[1-8]\d{15}$/.test(text)) return Number(text);
  throw new Failure('invalid', `Parameter type error: ${field} must be a whole number, got "${text.slice(0, 100)}"`, {
    field,
  });
}

function refuseUnknownDelivery(c: HookContext): Failure {
  const id = c.req.param('delivery_id');
  return new Failure('not_found', `Delivery not found: the webhook has no ${id}`, { errorCodeName: 'NOT_EXIST' });
}

const tags = ['Deliveries'];
const deliveryPath = hookPath.extend({ delivery_id: z.string() });
const asJson = <S extends z.ZodType>(description: string, schema: S) => ({
  description,
  content: { 'application/json': { schema } },
});

function describeRoutes(registry: OpenAPIHono['openAPIRegistry']): void {
  const path = '/repos/{owner}/{repo}/hooks/{id}';
  registry.registerPath({
    method: 'get',
    path: `${path}/deliveries`,
    summary: 'List the deliveries of a webhook',
    description: 'The newest first. The log is kept for 30 days.',
    tags,
    request: { params: hookPath, query: listParameters },
    responses: { 200: asJson('A page', z.array(deliveryJson)) },
  });
  registry.registerPath({
    method: 'get',
    path: `${path}/deliveries/{delivery_id}`,
    summary: 'Read a delivery with every attempt',
    tags,
    request: { params: deliveryPath },
    responses: { 200: asJson('The delivery', deliveryDetailJson) },
  });
  registry.registerPath({
    method: 'post',
    path: `${path}/deliveries/{delivery_id}/redeliver`,
    summary: 'Send a delivery again',
    description: 'The same bytes and the same id, with a new schedule of attempts.',
    tags,
    request: { params: deliveryPath },
    responses: { 202: asJson('It will be sent', deliveryJson) },
  });
  registry.registerPath({
    method: 'post',
    path: `${path}/replay`,
    summary: 'Send again what failed for good',
    description: 'Deliveries created since then that are dead, blocked or expired.',
    tags,
    request: { params: hookPath, query: replayParameters },
    responses: { 202: asJson('How many will be sent', replayJson) },
  });
}
