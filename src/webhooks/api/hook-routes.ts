/** The six endpoints of the contract. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { setPageHeaders } from '../../http/page-headers.ts';
import type { IdentityEnv, RequireScope } from '../../http/require-scope.ts';
import { createRoutes } from '../../http/routes.ts';
import { readPauses } from '../hooks/hook-status-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { toHookJson } from '../management/hook-json.ts';
import {
  createHook,
  deleteHook,
  findHook,
  hookChangeParameters,
  newHookParameters,
  updateHook,
} from '../management/manage-hook.ts';
import type { Management, SendingParts } from '../management/management.ts';
import { testHook } from '../management/test-hook.ts';
import { readPage } from '../parameters/paging.ts';
import { parseId, parseParameters, readParameters } from '../parameters/parameters.ts';
import type { Repository } from '../repositories/repository.ts';
import { describeHookRoutes } from './hook-documents.ts';

const SCOPE = 'all_hook';

export interface HookRoutesParts extends SendingParts {
  readonly requireScope: RequireScope;
}

type HookContext = Context<IdentityEnv>;

export function createHookRoutes(parts: HookRoutesParts): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeHookRoutes(routes.openAPIRegistry);
  addCollection(routes, parts);
  addSingle(routes, parts);
  routes.post('/repos/:owner/:repo/hooks/:id/tests', parts.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, parts);
    await testHook(parts, { caller: c.get('identity'), repository, hook: stored.hook });
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
    return c.json(await renderAll(repository, hooks, parts));
  });
  routes.post('/repos/:owner/:repo/hooks', parts.requireScope(SCOPE), async (c) => {
    const repository = await locateRepository(c, parts);
    const parameters = parseParameters(newHookParameters, await readParameters(c), 'create the webhook');
    return c.json(await render(repository, await createHook(parts, repository, parameters), parts), 201);
  });
}

function addSingle(routes: OpenAPIHono<IdentityEnv>, parts: HookRoutesParts): void {
  const path = '/repos/:owner/:repo/hooks/:id';
  routes.get(path, parts.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, parts);
    return c.json(await render(repository, stored, parts));
  });
  routes.patch(path, parts.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, parts);
    const parameters = parseParameters(hookChangeParameters, await readParameters(c), 'update the webhook');
    const updated = await updateHook(parts, repository, stored, parameters);
    const { id: _, ...body } = await render(repository, updated, parts);
    return c.json(body);
  });
  routes.delete(path, parts.requireScope(SCOPE), async (c) => {
    const { stored } = await locateHook(c, parts);
    await deleteHook(parts, stored.hook.id);
    return c.body(null, 204);
  });
}

async function renderAll({ id }: Repository, hooks: readonly StoredHook[], { store, vault, world }: Management) {
  const nowMs = world.nowMs();
  const pauses = await readPauses(store, id, nowMs);
  return hooks.map((stored) => toHookJson(stored, { vault, nowMs, pause: pauses.get(stored.hook.id) }));
}

async function render(repository: Repository, stored: StoredHook, parts: Management) {
  const [rendered] = await renderAll(repository, [stored], parts);
  return rendered!;
}

function locateRepository(c: HookContext, parts: Management): Promise<Repository> {
  const { owner = '', repo = '' } = c.req.param();
  return parts.access.findAdministered(c.get('identity'), owner, repo);
}

async function locateHook(c: HookContext, parts: Management): Promise<{ repository: Repository; stored: StoredHook }> {
  const id = parseId(c.req.param('id') ?? '', 'id');
  const repository = await locateRepository(c, parts);
  return { repository, stored: await findHook(parts, repository, id) };
}
