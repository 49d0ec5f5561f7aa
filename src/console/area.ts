/** Builds the console: pages on which signed-in people see and change the data of other areas, which pass their functions to it. */
import type { Area } from '../area.ts';
import { addAssetRoutes } from '../pages/assets.ts';
import { createLiveStreams } from '../pages/live-streams.ts';
import type { NavigationSection } from '../pages/navigation.ts';
import { createPageRoutes } from '../pages/page-routes.ts';
import { createSignedInPages, type SessionGuard } from '../pages/signed-in-pages.ts';
import type { World } from '../world.ts';
import { consoleStyles } from './frame/console.ts';
import { addModelRoutes, MODELS } from './models/model-routes.ts';
import type { ModelAdmin } from './models/model-views.ts';
import { addOverviewRoutes } from './overview/overview-routes.ts';
import { chooseTexts } from './texts/texts.ts';
import { addDeliveryRoutes } from './webhooks/delivery-routes.ts';
import { addHookRoutes } from './webhooks/hook-routes.ts';
import type { HookAdmin } from './webhooks/hook-views.ts';
import { addRepositoryRoutes, WEBHOOKS } from './webhooks/repository-routes.ts';

export interface ConsoleDependencies {
  readonly world: Pick<World, 'randomBytes' | 'sleep' | 'monotonicMs' | 'nowMs'>;
  readonly guard: SessionGuard;
  /** Absent if the process does not serve webhooks. */
  readonly hookAdmin: HookAdmin | undefined;
  /** Absent if the process does not serve predictions. */
  readonly modelAdmin: ModelAdmin | undefined;
}

const KEY_BYTES = 32;

export function createConsoleArea({ world, guard, hookAdmin, modelAdmin }: ConsoleDependencies): Area {
  const routes = createPageRoutes(guard.respondRefusal);
  const live = createLiveStreams({ world });
  const signedIn = createSignedInPages(routes, guard, live);
  addAssetRoutes(routes, [consoleStyles]);
  addOverviewRoutes(signedIn, { findAdvice: guard.findAdvice, hookAdmin, modelAdmin });
  if (hookAdmin !== undefined) {
    const createKey = () => Buffer.from(world.randomBytes(KEY_BYTES)).toString('base64url');
    addRepositoryRoutes(signedIn, hookAdmin);
    addHookRoutes(signedIn, { admin: hookAdmin, createKey });
    addDeliveryRoutes(signedIn, hookAdmin);
  }
  if (modelAdmin !== undefined) addModelRoutes(signedIn, { admin: modelAdmin, world });
  return { routes: [{ path: '/', errors: 'page', routes, respondPage: guard.respondRefusal }], workers: [live] };
}

/** The navigation of a process that serves these parts. */
export function createSectionList(parts: readonly string[]): SessionGuard['listSections'] {
  return ({ user }, locale): readonly NavigationSection[] => {
    const { nav } = chooseTexts(locale);
    const entries = [
      ...(parts.includes('webhooks') ? [{ path: WEBHOOKS, label: nav.webhooks }] : []),
      ...(parts.includes('prediction') && user.isAdmin ? [{ path: MODELS, label: nav.models }] : []),
    ];
    // Every process has these, whichever parts it serves (`api-reference/`).
    const reference = {
      title: nav.reference,
      entries: [
        { path: '/docs/api', label: nav.api },
        { path: '/docs/api/events', label: nav.events },
      ],
    };
    return entries.length === 0 ? [reference] : [{ title: nav.watch, entries }, reference];
  };
}
