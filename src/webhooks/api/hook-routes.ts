/** Serves the six webhook endpoints of GitCode's API v5: list, create, show, change, delete, test. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { setPageHeaders } from '../../http/page-headers.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv, RequireScope } from '../../http/scope-middleware.ts';
import { readActor } from '../../operations/read-actor.ts';
import { readPauses } from '../hooks/hook-status-store.ts';
import { countHooks, listHooks, type StoredHook } from '../hooks/hook-store.ts';
import { toHookJson } from '../management/hook-json.ts';
import {
  createHook,
  deleteHook,
  findHook,
  hookChangeParameters,
  newHookParameters,
  updateHook,
} from '../management/manage-hook.ts';
import type { Management, SendingDependencies } from '../management/management.ts';
import { testHook, testParameters } from '../management/test-hook.ts';
import { readPage } from '../parameters/paging.ts';
import { parseId, parseParameters, readParameters } from '../parameters/parameters.ts';
import type { Repository } from '../repositories/repository.ts';
import { describeRoutes } from './api-documents.ts';
import { HOOK_DOCUMENTS } from './hook-documents.ts';

const SCOPE = 'all_hook';

export interface HookRoutesDependencies extends SendingDependencies {
  readonly requireScope: RequireScope;
}

type HookContext = Context<IdentityEnv>;

export function createHookRoutes(dependencies: HookRoutesDependencies): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoutes(routes.openAPIRegistry, HOOK_DOCUMENTS);
  addCollection(routes, dependencies);
  addSingle(routes, dependencies);
  routes.post('/repos/:owner/:repo/hooks/:id/tests', dependencies.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, dependencies);
    const { event } = parseParameters(testParameters, await readParameters(c), 'test the webhook');
    await testHook(dependencies, { caller: c.get('identity'), repository, stored, event });
    return c.body(null, 204);
  });
  return routes;
}

function addCollection(routes: OpenAPIHono<IdentityEnv>, dependencies: HookRoutesDependencies): void {
  routes.get('/repos/:owner/:repo/hooks', dependencies.requireScope(SCOPE), async (c) => {
    const repository = await locateRepository(c, dependencies);
    const page = readPage(await readParameters(c), 'list the webhooks');
    const [hooks, total] = await Promise.all([
      listHooks(dependencies.store, repository.id, page),
      countHooks(dependencies.store, repository.id),
    ]);
    setPageHeaders(c, page, total, dependencies.baseUrl);
    return c.json(await renderAll(repository, hooks, dependencies));
  });
  routes.post('/repos/:owner/:repo/hooks', dependencies.requireScope(SCOPE), async (c) => {
    const repository = await locateRepository(c, dependencies);
    const parameters = parseParameters(newHookParameters, await readParameters(c), 'create the webhook');
    return c.json(
      await render(
        repository,
        await createHook(dependencies, { repository, actor: readActor(c) }, parameters),
        dependencies,
      ),
      201,
    );
  });
}

function addSingle(routes: OpenAPIHono<IdentityEnv>, dependencies: HookRoutesDependencies): void {
  const path = '/repos/:owner/:repo/hooks/:id';
  routes.get(path, dependencies.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, dependencies);
    return c.json(await render(repository, stored, dependencies));
  });
  routes.patch(path, dependencies.requireScope(SCOPE), async (c) => {
    const { repository, stored } = await locateHook(c, dependencies);
    const parameters = parseParameters(hookChangeParameters, await readParameters(c), 'update the webhook');
    const updated = await updateHook(dependencies, { repository, stored, actor: readActor(c) }, parameters);
    const { id: _, ...body } = await render(repository, updated, dependencies);
    return c.json(body);
  });
  routes.delete(path, dependencies.requireScope(SCOPE), async (c) => {
    await deleteHook(dependencies, { ...(await locateHook(c, dependencies)), actor: readActor(c) });
    return c.body(null, 204);
  });
}

async function renderAll({ id }: Repository, hooks: readonly StoredHook[], { store, cipher, world }: Management) {
  const nowMs = world.nowMs();
  const pauses = await readPauses(store, id, nowMs);
  return hooks.map((stored) => toHookJson(stored, { cipher, nowMs, pause: pauses.get(stored.hook.id) }));
}

async function render(repository: Repository, stored: StoredHook, dependencies: Management) {
  const [rendered] = await renderAll(repository, [stored], dependencies);
  return rendered!;
}

function locateRepository(c: HookContext, dependencies: Management): Promise<Repository> {
  const { owner = '', repo = '' } = c.req.param();
  return dependencies.access.findAdministered(c.get('identity'), owner, repo);
}

async function locateHook(
  c: HookContext,
  dependencies: Management,
): Promise<{ repository: Repository; stored: StoredHook }> {
  const id = parseId(c.req.param('id') ?? '', 'id');
  const repository = await locateRepository(c, dependencies);
  return { repository, stored: await findHook(dependencies, repository, id) };
}
