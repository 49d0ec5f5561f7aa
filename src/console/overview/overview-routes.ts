/** The first page: what runs here, what is in trouble, and what to do next. Everyone sees their own, administrators all. */
import type { Gate } from '../../pages/visits.ts';
import { callerOf, showView, type Visits } from '../frame/console.ts';
import type { ModelAdmin } from '../models/model-admin.ts';
import { texts } from '../texts/texts.ts';
import type { HookAdmin } from '../webhooks/hook-admin.ts';
import { renderOverview } from './overview-pages.ts';

export const OVERVIEW = '/';

export interface OverviewDependencies {
  readonly findAdvice: Gate['findAdvice'];
  readonly hookAdmin: Pick<HookAdmin, 'readOverview'> | undefined;
  readonly modelAdmin: Pick<ModelAdmin, 'readHealth'> | undefined;
}

export function addOverviewRoutes(
  { livePage }: Pick<Visits, 'livePage'>,
  { findAdvice, hookAdmin, modelAdmin }: OverviewDependencies,
): void {
  livePage(OVERVIEW, async (visit) => {
    const { user } = visit.session;
    const [advice, webhooks, health] = await Promise.all([
      findAdvice(visit.session),
      hookAdmin?.readOverview(callerOf(visit)),
      user.isAdmin ? modelAdmin?.readHealth() : undefined,
    ]);
    const content = renderOverview({ advice, webhooks, health });
    return showView(visit, { title: texts.overview.title, here: OVERVIEW, content });
  });
}
