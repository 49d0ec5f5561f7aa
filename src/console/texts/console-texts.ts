/** Collects every English text of the console's own pages. */
import { frameTexts } from '../../pages/frame-texts.ts';
import { accuracyTexts } from './accuracy-texts.ts';
import { deliveryTexts } from './delivery-texts.ts';
import { errorTexts } from './error-texts.ts';
import { hookTexts } from './hook-texts.ts';
import { modelTexts } from './model-texts.ts';
import { overviewTexts } from './overview-texts.ts';
import { repositoryTexts } from './repository-texts.ts';
import { whatIfTexts } from './what-if-texts.ts';

export const consoleTexts = {
  ...frameTexts,
  trail: 'Where this page is',
  live: 'live',
  timeIn: (zone: string) => `Time (${zone})`,
  table: (label: string) => `Table: ${label}`,
  nav: {
    watch: 'What runs here',
    webhooks: 'Webhooks',
    models: 'Latency models',
    reference: 'Reference',
    api: 'HTTP API',
    events: 'Events',
  },
  repositories: repositoryTexts,
  hooks: hookTexts,
  models: modelTexts,
  accuracy: accuracyTexts,
  errors: errorTexts,
  whatIf: whatIfTexts,
  deliveries: deliveryTexts,
  overview: overviewTexts,
} as const;
