/** Lists the Chinese texts of the page of a model's accuracy over time. */
import { formatCount } from '../../language/plural.ts';
import type { Texts } from '../../language/texts.ts';
import type { accuracyTexts } from './accuracy-texts.ts';

export const accuracyTextsZh: Texts<typeof accuracyTexts> = {
  title: '精度变化',
  lead: (zone) =>
    `所有进程的预测与上报延迟的对比。时间为 ${zone}。虚线是线上版本训练时在留出数据上达到的水平；对于覆盖率，是 p90 的名义值 90%。`,
  windows: { '12h': '12 小时', '7d': '7 天', '30d': '30 天' },
  window: '时间范围',
  podTypes: 'Pod 类型',
  server: '服务器',
  showServer: '显示服务器',
  allServers: '全部，按 Pod 类型',
  noReports: '此时间范围内没有上报。',
  error: (target) => `${target} 误差（MAPE）`,
  coverage: (target) => `${target} p90 覆盖率`,
  errorLine: 'MAPE',
  coverageLine: '不超过 p90',
  heldOut: '留出集 MAPE',
  nominalCoverage: '名义：90%',
  summary: (mean, newest, rows) => `${formatCount(rows)} 次上报的均值为 ${mean}%，最新一段为 ${newest}%`,
  summaryHeldOut: (mape) => `，留出集为 ${mape}%`,
  promotion: '版本上线',
  alarm: '漂移告警',
  promoted: (version) => `版本 ${version} 上线`,
  rolledBack: (version) => `版本 ${version} 回滚`,
  alarms: (target, cause, count) =>
    `${formatCount(count)} 次漂移告警：${target} ${cause === 'error' ? '误差' : 'p90 覆盖率'}`,
  events: '版本和漂移告警',
  noEvents: '此时间范围内没有版本上线，也没有发现漂移。',
  moreEvents: (count) => `更早还有 ${formatCount(count)} 个。`,
  when: '时间',
  what: '事件',
  values: (target) => `${target} 数值`,
  version: '版本',
  prior: '先验模型',
  rows: '上报数',
};
