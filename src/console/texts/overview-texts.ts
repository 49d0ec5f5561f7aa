/** Lists the English texts of the overview. */
import { formatCount, plural } from '../../language/plural.ts';

export const overviewTexts = {
  title: 'Overview',
  leadOfAll: 'Everything that this service runs.',
  lead: 'Your webhooks and what they do.',
  leadOfAccount: 'Your account, and the applications that may act for you.',
  tiles: 'State',
  failing: 'Failing webhooks',
  disabled: 'Disabled by failures',
  switchedOff: (count: number) => `${formatCount(count)} switched off by the owner`,
  paused: (count: number) => `${formatCount(count)} paused`,
  ofHooks: (count: number) => `of ${plural(count, 'webhook', 'webhooks')}`,
  backlog: 'Waiting deliveries',
  backlogCount: (count: number, isCut: boolean) => `${formatCount(count)}${isCut ? '+' : ''}`,
  oldest: (age: string) => `the oldest for ${age}`,
  nothingWaits: 'nothing waits',
  heldByOff: 'held by webhooks that are off',
  delivered: 'Attempts in the last hour',
  successRate: (percent: string) => `${percent} % accepted`,
  noAttempts: 'none yet',
  responseTime: 'Response time',
  median: (ms: string) => `median, p95 ${ms}`,
  none: '–',
  trouble: 'Needs attention',
  noTrouble: 'Nothing needs attention: no webhook fails, no model drifts.',
  noTroubleOfHooks: 'Nothing needs attention: no webhook fails.',
  moreTroubled: (count: number) => `And ${plural(count, 'more webhook', 'more webhooks')}.`,
  moreTroubledOfAll: (count: number) =>
    `And ${plural(count, 'more webhook', 'more webhooks')}: “trivet hook all list” lists them.`,
  failingFor: (age: string, fails: number) => `fails for ${age}, ${plural(fails, 'attempt', 'attempts')}`,
  disabledFor: (age: string) => `disabled for ${age}`,
  pausedFor: (age: string, reason: string) => `paused for another ${age}: ${reason}`,
  answered: (code: number) => `last answer ${code}`,
  noAnswer: (reason: string) => `no answer: ${reason}`,
  drift: 'drift',
  driftOf: (target: string, cause: 'error' | 'coverage', count: number, age: string) =>
    `${cause === 'error' ? `The error of ${target} has changed` : `The p90 of ${target} does not hold`}: ${plural(count, 'alarm', 'alarms')} in a day, the last ${age} ago`,
  shifted: 'slower or faster than learned',
  shiftOf: (server: string, target: string, factor: string) =>
    `Server ${server}: ${target} is ${factor} times as long as the served version learned`,
  shiftNoServer: '(no address)',
  worse: 'less accurate than on held-out rows',
  worseOf: (target: string, live: string, heldOut: string) =>
    `${target}: live error ${live} %, ${heldOut} % on rows held out of its training`,
  advice: {
    failing: 'Deliveries are retried automatically. When the receiver works, a test sends those that wait.',
    disabled: 'Nothing is sent meanwhile. Repair the receiver, then enable the webhook: held deliveries are sent.',
    worse:
      'Find out which server or load is predicted badly. If an earlier version was better, go back to it on the page of the model.',
    drift:
      'A new version is learned from the newest reports. If the alarms go on after that, look for what changes at the servers.',
    shifted:
      'Predictions already follow the change, and the next version learns it. Check the server: throttling, other software, or another load on it.',
  },
  charts: 'Deliveries of the last hour',
  perMinute: 'Attempts a minute',
  perMinuteSummary: (accepted: number, failed: number) =>
    `${formatCount(accepted)} accepted, ${formatCount(failed)} failed`,
  accepted: 'accepted',
  failed: 'failed',
  timeSummary: (median: string, p95: string) => `median ${median}, p95 ${p95}`,
  medianLine: 'median',
  p95Line: 'p95',
  models: 'Latency models',
  model: 'Model',
  time: 'Time',
  liveError: 'Live error %',
  heldOutError: 'Held-out error %',
  liveCoverage: 'Live p90 coverage %',
  nominalCoverage: 'Nominal coverage %',
  reports: 'Reports',
  modelsLead:
    'Live: what the served version predicted in the last 24 hours, beside the reported times. Held-out: the error on rows that the training of the served version did not use. Nominal: the share of times that should be at or below a p90.',
  allModels: (count: number) => (count === 1 ? 'To the model' : `All ${plural(count, 'model', 'models')}`),
  prior: 'prior',
  next: 'Next steps',
  steps: {
    repository: {
      path: '/webhooks/new',
      label: 'Create a repository',
      about: 'It stands for one on your code host and owns the webhooks for it.',
    },
    hook: {
      path: '/webhooks',
      label: 'Create a webhook',
      about: 'Choose a repository: its webhooks send a request to your address whenever something happens.',
    },
    model: {
      path: '/models',
      label: 'Report observations',
      about: 'A model is learned from the latencies that your gateway reports. Until then a prior answers.',
    },
    application: {
      path: '/account/applications/new',
      label: 'Register an application',
      about: 'Let people sign in to it with their account here.',
    },
    token: {
      path: '/account/tokens',
      label: 'Create a token',
      about: 'For scripts, command lines and gateways.',
    },
  },
} as const;
