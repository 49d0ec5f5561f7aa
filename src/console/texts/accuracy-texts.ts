/** Lists the English texts of the page of a model's accuracy over time. */
import { formatCount, plural } from '../../language/plural.ts';

export const accuracyTexts = {
  title: 'Accuracy over time',
  lead: (zone: string) =>
    `Predictions beside the reported latencies, of all processes. Times are in ${zone}. The dashed line is what the served version reached on rows held out while it learned; for coverage it is the 90 % of times that should be at or below a p90.`,
  windows: { '12h': '12 hours', '7d': '7 days', '30d': '30 days' },
  window: 'Window',
  podTypes: 'Pod type',
  server: 'Server',
  showServer: 'Show server',
  allServers: 'all, by pod type',
  noReports: 'Nothing was reported in this window.',
  error: (target: string) => `${target} error (MAPE)`,
  coverage: (target: string) => `${target} p90 coverage`,
  errorLine: 'MAPE',
  coverageLine: 'At or below the p90',
  heldOut: 'Held-out MAPE',
  nominalCoverage: 'Nominal: 90 %',
  summary: (mean: string, newest: string, rows: number) =>
    `${mean} % over ${plural(rows, 'reported time', 'reported times')}, ${newest} % in the newest step`,
  summaryHeldOut: (mape: string) => `, ${mape} % held out`,
  promotion: 'A version was served',
  alarm: 'Drift alarm',
  promoted: (version: number) => `Version ${version} was served`,
  rolledBack: (version: number) => `Version ${version} was rolled back`,
  alarms: (target: string, cause: 'error' | 'coverage', count: number) =>
    `${plural(count, 'drift alarm', 'drift alarms')}: ${target} ${cause === 'error' ? 'error' : 'p90 coverage'}`,
  events: 'Versions and drift alarms',
  noEvents: 'No version was served and no drift was found in this window.',
  moreEvents: (count: number) => `And ${formatCount(count)} earlier.`,
  when: 'Time',
  what: 'Event',
  values: (target: string) => `${target} values`,
  version: 'Version',
  prior: 'prior',
  rows: 'Reported times',
} as const;
