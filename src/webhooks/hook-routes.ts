/** The six endpoints of the contract. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../errors.ts';
import { createRoutes } from '../http/routes.ts';
import type { IdentityEnv } from '../identity.ts';
import { announceTest } from './announce.ts';
import { cancelEndpointStep } from './delivery-store.ts';
import { describeHookRoutes } from './hook-documents.ts';
import { toHookJson } from './hook-json.ts';
import type { StoredHook } from './hook-store.ts';
import { createHook, findHook, hookChangeParameters, newHookParameters, updateHook } from './manage-hook.ts';
import type { Management, ManagementParts } from './management.ts';
import { readPage, setPageHeaders } from './paging.ts';
import { parseParameters, readParameters } from './parameters.ts';
import type { Repository } from './repository.ts';
import { createSampleEvent } from './sample-event.ts';

const SCOPE = 'all_hook';
const MAX_TESTS_AN_HOUR = 60;
const TEST_DEADLINE_MS = 10_000;
const HOUR_MS = 3_600_000;

export interface HookRoutesParts extends ManagementParts {
  /** Makes the one attempt of a delivery and resolves when it has ended, or at the deadline. */
  readonly attemptNow: (deliveryId: number, deadlineMs: number) => Promise<unknown>;
}

type HookContext = Context<IdentityEnv>;

export function createHookRoutes(parts: HookRoutesParts): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeHookRoutes(routes.openAPIRegistry);
  addCollection(routes, parts);
  addSingle(routes, parts);
  routes.post('/repos/:owner/:repo/hooks/:id/tests', parts.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, parts);
    await takeTest(c, parts);
    await sendTest(c, parts, repository, stored);
    return c.body(null, 204);
  });
  return routes;
}

function addCollection(routes: OpenAPIHono<IdentityEnv>, parts: HookRoutesParts): void {
  routes.get('/repos/:owner/:repo/hooks', parts.requireScope(SCOPE), async (c) => {
    const repository = await locateRepository(c, parts);
    const page = readPage(await readParameters(c), 'list the webhooks');
    const [hooks, total] = await Promise.all([
      parts.hooks.list(repository.id, page.size, page.offset),
      parts.hooks.count(repository.id),
    ]);
    setPageHeaders(c, page, total, parts.baseUrl);
    return c.json(hooks.map((stored) => render(stored, parts)));
  });
  routes.post('/repos/:owner/:repo/hooks', parts.requireScope(SCOPE), async (c) => {
    const repository = await locateRepository(c, parts);
    const parameters = parseParameters(newHookParameters, await readParameters(c), 'create the webhook');
    return c.json(render(await createHook(parts, repository, parameters), parts), 201);
  });
}

function addSingle(routes: OpenAPIHono<IdentityEnv>, parts: HookRoutesParts): void {
  const path = '/repos/:owner/:repo/hooks/:id';
  routes.get(path, parts.requireScope(SCOPE), async (c) => {
    const { stored } = await locateHook(c, parts);
    return c.json(render(stored, parts));
  });
  routes.patch(path, parts.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, parts);
    const parameters = parseParameters(hookChangeParameters, await readParameters(c), 'update the webhook');
    const { id: _, ...body } = render(await updateHook(parts, repository, stored, parameters), parts);
    return c.json(body);
  });
  routes.delete(path, parts.requireScope(SCOPE), async (c) => {
    const { stored } = await locateHook(c, parts);
    await parts.hooks.remove(stored.hook.id, [cancelEndpointStep(stored.hook.id, parts.world.nowMs())]);
    return c.body(null, 204);
  });
}

function render(stored: StoredHook, parts: Management) {
  return toHookJson(stored, parts.vault, parts.world.nowMs());
}

function locateRepository(c: HookContext, parts: Management): Promise<Repository> {
  const { owner = '', repo = '' } = c.req.param();
  return parts.access.findAdministered(c.get('identity'), owner, repo);
}

async function locateHook(c: HookContext, parts: Management): Promise<{ repository: Repository; stored: StoredHook }> {
  const id = parseHookId(c.req.param('id') ?? '');
  const repository = await locateRepository(c, parts);
  return { repository, stored: await findHook(parts, repository, id) };
}

export function parseHookId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Failure('invalid', `Parameter type error: id must be a whole number, got "${text.slice(0, 100)}"`, {
    field: 'id',
  });
}

async function takeTest(c: HookContext, parts: Management): Promise<void> {
  const nowMs = parts.world.nowMs();
  const hour = Math.floor(nowMs / HOUR_MS);
  if (await parts.hooks.takeTest(c.get('identity').userId, hour, MAX_TESTS_AN_HOUR)) return;
  throw new Failure('too_many', `Cannot test the webhook: at most ${MAX_TESTS_AN_HOUR} tests an hour are allowed`, {
    retryAfterSeconds: Math.ceil(((hour + 1) * HOUR_MS - nowMs) / 1000),
  });
}

/** An ordinary push, recorded like any other delivery: the platform has no ping. */
async function sendTest(
  c: HookContext,
  parts: HookRoutesParts,
  repository: Repository,
  { hook }: StoredHook,
): Promise<void> {
  await parts.guard.checkTarget(hook.url);
  const { login } = c.get('identity');
  const event = createSampleEvent(
    'push',
    { username: login, name: login },
    repository.defaultBranch,
    parts.world.nowMs(),
  );
  const announcement = { repository, event, source: 'test', idempotencyKey: undefined };
  const deliveryId = await announceTest(parts, announcement, hook);
  await parts.attemptNow(deliveryId, parts.world.nowMs() + TEST_DEADLINE_MS);
}
