/** No page is left out of the tests that open pages in a real browser, in both languages, at two widths, light and dark. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createReferenceRoutes } from '../src/api-reference/reference-routes.ts';
import { createConsoleArea } from '../src/console/area.ts';
import type { HookAdmin } from '../src/console/webhooks/hook-views.ts';
import type { RouteMount } from '../src/http/mount.ts';
import { startAuthorizationServer } from './support/authorization/authorization-server.ts';
import { matchPath, OPENED_PAGES, UNOPENED_PAGES } from './support/rules/opened-pages.ts';
import { createStorePlace, openTestStore } from './support/store/engines.ts';

type ModelAdmin = NonNullable<Parameters<typeof createConsoleArea>[0]['modelAdmin']>;

/** The paths of all GET routes that answer with pages, in a process that serves everything. */
async function listPageRoutes(): Promise<string[]> {
  await using store = await openTestStore(await createStorePlace('sqlite'));
  const environment = { UPSTREAM_ISSUER: 'https://upstream.example.org', UPSTREAM_CLIENT_ID: 'trivet' };
  await using server = await startAuthorizationServer(store, { environment });
  const { area, world } = server;
  // Nothing is called: only the routes are read.
  const [hookAdmin, modelAdmin] = [{} as HookAdmin, {} as ModelAdmin];
  const console = createConsoleArea({ world, guard: area.guard, hookAdmin, modelAdmin });
  const reference: RouteMount = {
    path: '/',
    errors: 'page',
    routes: createReferenceRoutes(() => ({}), server.url),
  };
  const mounts = [...area.routes, ...(console.routes ?? []), reference].filter(({ errors }) => errors === 'page');
  const paths = mounts.flatMap(({ path, routes }) =>
    routes.routes
      .filter((route) => route.method === 'GET' && !route.path.startsWith('/assets/'))
      .map((route) => `${path}/${route.path}`.replace(/\/+/g, '/').replace(/(.)\/$/, '$1')),
  );
  return [...new Set(paths)].sort();
}

test('every page is opened by a test with a browser, or has a reason why not', async () => {
  const routes = await listPageRoutes();
  const openedPaths = new Set(Object.values(OPENED_PAGES).flat());
  const unopened = new Map(UNOPENED_PAGES);
  assert.deepEqual(
    routes.filter((path) => !openedPaths.has(path) && !unopened.has(path)),
    [],
    'open the page in a test that looks for flaws, and list it in test/support/rules/opened-pages.ts',
  );
  assert.deepEqual(
    [...openedPaths, ...unopened.keys()].filter((path) => !routes.includes(path)),
    [],
    'there is no such page any more',
  );
  assert.deepEqual(
    [...unopened.keys()].filter((path) => openedPaths.has(path)),
    [],
    'the reason is no longer true',
  );
});

test('each listed test looks for flaws', () => {
  for (const file of Object.keys(OPENED_PAGES))
    assert.match(readFileSync(file, 'utf8'), /find(Page|Shown)Flaws\(/, file);
});

test('matchPath() matches the paths of a route alone', () => {
  const path = matchPath('/webhooks/:owner/:id{[0-9]{1,15}}/change');
  assert.match('/webhooks/ada/12/change', path);
  for (const other of ['/webhooks/ada/x/change', '/webhooks/ada/12/change/', '/webhooks/ada/b/12/change'])
    assert.doesNotMatch(other, path);
});
