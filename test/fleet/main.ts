/**
 * Kills the primary of three PostgreSQL servers under load: `npm run test:fleet`, with these options after `--`:
 *   --route hosts|haproxy|pgbouncer  how the service reaches the primary (hosts)
 *   --short                          a tenth of the load, and one kill
 *   --blows kill,freeze              what happens to the primary, one after the other (kill,kill; with --short kill)
 *   --runs 20                        runs, one after the other (1)
 *   --standby-retry 500ms            PostgreSQL's wal_retrieve_retry_interval (5s)
 * Needs Debian's patroni, etcd-server, haproxy, pgbouncer and postgresql.
 */
import { readBenchFlags } from '../../bench/support/bench-flags.ts';
import { type Blow, type FailoverReport, FULL_SCALE, formatSeconds, runFailover, SHORT_SCALE } from './failover.ts';
import { ROUTES, type Route } from './patroni-fleet.ts';

const { values } = readBenchFlags({
  options: {
    route: { type: 'string', default: 'hosts' },
    runs: { type: 'string', default: '1' },
    blows: { type: 'string' },
    short: { type: 'boolean', default: false },
    'standby-retry': { type: 'string', default: '5s' },
  },
});

function refuse(reason: string): never {
  process.stderr.write(`Cannot run the test: ${reason}\n`);
  process.exit(2);
}

function readRoute(text: string): Route {
  const route = ROUTES.find((known) => known === text);
  return route ?? refuse(`--route must be one of ${ROUTES.join(', ')}`);
}

function readBlows(text: string): Blow[] {
  return text.split(',').map((blow) => {
    return blow === 'kill' || blow === 'freeze' ? blow : refuse('--blows must be a list of kill and freeze');
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
