/**
 * `npm run test:fleet`, with `-- --route haproxy` or `pgbouncer`, `--runs 20`, `--short`, `--blows kill,freeze`,
 * `--standby-retry 500ms`.
 * Needs Debian's patroni, etcd-server, haproxy, pgbouncer and postgresql.
 */
import { parseArgs } from 'node:util';
import { type Blow, type FailoverReport, FULL_SCALE, formatSeconds, runFailover, SHORT_SCALE } from './failover.ts';
import { ROUTES, type Route } from './patroni-fleet.ts';

const { values } = parseArgs({
  options: {
    route: { type: 'string', default: 'hosts' },
    runs: { type: 'string', default: '1' },
    blows: { type: 'string' },
    short: { type: 'boolean', default: false },
    'standby-retry': { type: 'string', default: '5s' },
  },
});

function readRoute(text: string): Route {
  const route = ROUTES.find((known) => known === text);
  if (route === undefined) throw new Error(`--route must be one of ${ROUTES.join(', ')}`);
  return route;
}

function readBlows(text: string): Blow[] {
  return text.split(',').map((blow) => {
    if (blow !== 'kill' && blow !== 'freeze') throw new Error('--blows must be a list of kill and freeze');
    return blow;
  });
}

function print(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
}

function renderRow(run: number, { failovers, counts, seconds, sentAgain, failures }: FailoverReport): string {
  const list = (pick: (index: number) => string) => failovers.map((_, index) => pick(index)).join(', ');
  const repeated = [...counts.repeated.values()].reduce((sum, count) => sum + count, 0);
  const cells = [
    run,
    failures.length === 0 ? 'passed' : `FAILED (${failures.length})`,
    list((index) => `${failovers[index]!.blow} ${failovers[index]!.node}`),
    list((index) => formatSeconds(failovers[index]!.promotionMs)),
    list((index) => formatSeconds(failovers[index]!.commitMs)),
    list((index) => formatSeconds(failovers[index]!.acceptedMs)),
    list((index) => formatSeconds(failovers[index]!.deliveryMs)),
    counts.received,
    counts.refreshed,
    `${counts.exchanged}+${counts.spentUnanswered}`,
    counts.observed,
    `${counts.predicted} (slowest ${Math.round(counts.slowestPredictMs)} ms)`,
    repeated,
    sentAgain,
    `${seconds.toFixed(0)} s`,
  ];
  return `| ${cells.join(' | ')} |`;
}

const HEAD = [
  'run',
  'result',
  'primary',
  'promotion after',
  'commit after promotion',
  'event after promotion',
  'delivery after promotion',
  'deliveries',
  'refreshes',
  'codes (answered + spent unanswered)',
  'observations',
  'predictions',
  'calls sent again',
  'deliveries sent twice',
  'time',
];

const route = readRoute(values.route);
const blows = readBlows(values.blows ?? (values.short ? 'kill' : 'kill,kill'));
const rows: string[] = [];
let passed = 0;
for (let run = 1; run <= Number(values.runs); run += 1) {
  const standbyRetry = values['standby-retry'];
  const report = await runFailover({
    route,
    standbyRetry,
    scale: values.short ? SHORT_SCALE : FULL_SCALE,
    blows,
    print,
  });
  for (const failure of report.failures.slice(0, 20)) print(`FAILED: ${failure}`);
  if (report.failures.length === 0) passed += 1;
  rows.push(renderRow(run, report));
  print(rows.at(-1)!);
}
process.stdout.write(`\n| ${HEAD.join(' | ')} |\n|${HEAD.map(() => '---').join('|')}|\n${rows.join('\n')}\n`);
print(`${passed} of ${values.runs} runs through ${route} passed`);
process.exitCode = passed === Number(values.runs) ? 0 : 1;
