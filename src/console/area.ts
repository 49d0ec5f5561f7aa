/** The console: pages on which signed-in people see and change what the other areas keep. They hand it their functions. */
import type { Area } from '../area.ts';
import { addAssetRoutes } from '../pages/assets.ts';
import type { NavigationSection } from '../pages/navigation.ts';
import { createPageRoutes, respondRefusal } from '../pages/page-routes.ts';
import { createVisits, type Gate } from '../pages/visits.ts';
import type { World } from '../world.ts';
import { consoleStyles } from './frame/console.ts';
import type { ModelAdmin } from './models/model-admin.ts';
import { addModelRoutes, MODELS } from './models/model-routes.ts';
import { texts } from './texts/texts.ts';
import { addDeliveryRoutes } from './webhooks/delivery-routes.ts';
import type { HookAdmin } from './webhooks/hook-admin.ts';
import { addHookRoutes } from './webhooks/hook-routes.ts';
import { addRepositoryRoutes, WEBHOOKS } from './webhooks/repository-routes.ts';

export interface ConsoleDependencies {
  readonly world: Pick<World, 'randomBytes'>;
  readonly gate: Gate;
  /** Absent: the process does not serve webhooks. */
  readonly hookAdmin: HookAdmin | undefined;
  /** Absent: the process does not serve predictions. */
  readonly modelAdmin: ModelAdmin | undefined;
}

const KEY_BYTES = 32;

export function createConsoleArea({ world, gate, hookAdmin, modelAdmin }: ConsoleDependencies): Area {
  const routes = createPageRoutes();
  const visits = createVisits(routes, gate);
  addAssetRoutes(routes, [consoleStyles]);
  if (hookAdmin !== undefined) {
    const createKey = () => Buffer.from(world.randomBytes(KEY_BYTES)).toString('base64url');
    addRepositoryRoutes(visits, hookAdmin);
    addHookRoutes(visits, { admin: hookAdmin, createKey });
    addDeliveryRoutes(visits, hookAdmin);
  }
  if (modelAdmin !== undefined) addModelRoutes(visits, modelAdmin);
  return { routes: [{ path: '/', errors: 'page', routes, respondPage: respondRefusal }] };
}

/** Where the navigation leads in a process that serves these parts. */
export function createSectionList(parts: readonly string[]): Gate['listSections'] {
  const { nav } = texts;
  const webhooks = { path: WEBHOOKS, label: nav.webhooks, about: nav.webhooksAbout };
  const models = { path: MODELS, label: nav.models, about: nav.modelsAbout };
  return ({ user }): readonly NavigationSection[] => {
    const entries = [
      ...(parts.includes('webhooks') ? [webhooks] : []),
      ...(parts.includes('prediction') && user.isAdmin ? [models] : []),
    ];
    return entries.length === 0 ? [] : [{ title: nav.watch, entries }];
  };
}
