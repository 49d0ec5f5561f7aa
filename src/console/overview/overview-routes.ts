/** Serves the overview, the first page: people see their own webhooks, and administrators see all and the models. */
import { readLocale } from '../../pages/locale.ts';
import type { SessionGuard } from '../../pages/signed-in-pages.ts';
import { callerOf, type SignedInPages, showView } from '../frame/console.ts';
import type { ModelAdmin } from '../models/model-views.ts';
import { readTexts } from '../texts/texts.ts';
import type { HookAdmin } from '../webhooks/hook-views.ts';
import { renderOverview } from './overview-pages.ts';

export const OVERVIEW = '/';

export interface OverviewDependencies {
  readonly findAdvice: SessionGuard['findAdvice'];
  readonly hookAdmin: Pick<HookAdmin, 'readOverview'> | undefined;
  readonly modelAdmin: Pick<ModelAdmin, 'readHealth'> | undefined;
}

export function addOverviewRoutes(
  { livePage }: Pick<SignedInPages, 'livePage'>,
  { findAdvice, hookAdmin, modelAdmin }: OverviewDependencies,
): void {
  livePage(OVERVIEW, async (request) => {
    const texts = readTexts(request.c);
    const { user } = request.session;
    const [advice, webhooks, health] = await Promise.all([
      findAdvice(request.session, readLocale(request.c)),
      hookAdmin?.readOverview(callerOf(request)),
      user.isAdmin ? modelAdmin?.readHealth() : undefined,
    ]);
    const content = renderOverview(texts, { advice, webhooks, health });
    return showView(request, { title: texts.overview.title, here: OVERVIEW, content });
  });
}
