/** Collects every Chinese text of the console's own pages. */
import type { Texts } from '../../language/texts.ts';
import { frameTextsZh } from '../../pages/frame-texts-zh.ts';
import { accuracyTextsZh } from './accuracy-texts-zh.ts';
import type { consoleTexts } from './console-texts.ts';
import { deliveryTextsZh } from './delivery-texts-zh.ts';
import { errorTextsZh } from './error-texts-zh.ts';
import { hookTextsZh } from './hook-texts-zh.ts';
import { modelTextsZh } from './model-texts-zh.ts';
import { overviewTextsZh } from './overview-texts-zh.ts';
import { repositoryTextsZh } from './repository-texts-zh.ts';
import { whatIfTextsZh } from './what-if-texts-zh.ts';

export const consoleTextsZh: Texts<typeof consoleTexts> = {
  ...frameTextsZh,
  trail: '当前位置',
  live: '实时',
  timeIn: (zone) => `时间（${zone}）`,
  table: (label) => `表格：${label}`,
  nav: {
    watch: '运行情况',
    webhooks: 'Webhook',
    models: '延迟模型',
    reference: '参考',
    api: 'HTTP API',
    events: '事件',
  },
  repositories: repositoryTextsZh,
  hooks: hookTextsZh,
  models: modelTextsZh,
  accuracy: accuracyTextsZh,
  errors: errorTextsZh,
  whatIf: whatIfTextsZh,
  deliveries: deliveryTextsZh,
  overview: overviewTextsZh,
};
