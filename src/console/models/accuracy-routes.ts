/** Serves the page of a model's accuracy over time. */
import type { World } from '../../world.ts';
import { type PageRequest, type SignedInPages, showView } from '../frame/console.ts';
import { readTexts } from '../texts/texts.ts';
import { type AccuracyChoice, AGGREGATE, isWindowName, listSteps, type WindowName } from './accuracy-choice.ts';
import { type AccuracyPage, renderAccuracyPage } from './accuracy-pages.ts';
import { tabulateSteps } from './accuracy-steps.ts';
import type { AccuracySeries } from './accuracy-views.ts';
import type { ModelAdmin } from './model-views.ts';

export interface AccuracyDependencies {
  readonly admin: ModelAdmin;
  readonly world: Pick<World, 'nowMs'>;
}

export function addAccuracyRoutes(page: SignedInPages['page'], dependencies: AccuracyDependencies): void {
  page('/models/accuracy', async (request) => {
    const texts = readTexts(request.c);
    return showView(request, {
      title: texts.accuracy.title,
      here: '/models',
      content: renderAccuracyPage(texts, await readPage(readChoice(request), dependencies)),
    });
  });
}

/** An unknown window counts as the shortest. */
function readChoice({ c }: PageRequest): AccuracyChoice & { readonly window: WindowName } {
  const window = c.req.query('window');
  return {
    name: c.req.query('name') ?? '',
    window: isWindowName(window) ? window : '12h',
    podType: c.req.query('pod_type') || undefined,
    server: c.req.query('server') || undefined,
  };
}

async function readPage(
  asked: AccuracyChoice & { readonly window: WindowName },
  { admin, world }: AccuracyDependencies,
): Promise<AccuracyPage> {
  const { name, window, server } = asked;
  const steps = listSteps(window, server !== undefined, world.nowMs());
  const query = { targetModel: name, ...steps };
  const model = await admin.readModel(name);
  const [ofPodTypes, ofServer, alarms] = await Promise.all([
    admin.charts.readAccuracyOverTime(query),
    server === undefined ? undefined : admin.charts.readServerOverTime(query, server),
    admin.charts.listDriftAlarmHours(name, steps.fromMs),
  ]);
  const podTypes = [...new Set(ofPodTypes.map(({ part }) => part || AGGREGATE))];
  const podType = server === undefined ? (asked.podType ?? podTypes[0]) : undefined;
  const shown = ofServer ?? ofPodTypes.filter(({ part }) => (part || AGGREGATE) === podType);
  const toSteps = ({ target, points }: AccuracySeries) => ({
    target,
    steps: tabulateSteps(points, model, { steps, target, podType: podType ?? 'all' }),
  });
  return {
    choice: { name, window, podType, server },
    podTypes,
    servers: model.servers.map((one) => one.server).filter((address) => address !== ''),
    targets: shown.map(toSteps),
    promotions: model.promotions,
    alarms,
    fromMs: steps.fromMs,
  };
}
