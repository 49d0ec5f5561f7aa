/** Derives the advice of the report from the figures of an evaluation. */
import {
  hasTimes,
  type ObservationTable,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../schema/observation-table.ts';
import { type Answer, measureAccuracy } from './accuracy.ts';
import { listLengths } from './answer-lengths.ts';
import { escapeHtml } from './plots.ts';
import { type Compared, compareAccuracy } from './report-baselines.ts';
import type { Evaluation } from './report-tables.ts';

export interface Advice {
  readonly title: string;
  /** The figures behind the advice, and what helps. */
  readonly text: string;
}

interface Evaluated extends Evaluation {
  readonly protocol: string;
}

type Rule = (evaluated: Evaluated, target: PredictionTarget, compared: Compared) => Advice | undefined;

/** With fewer rows, the figures of one server or load vary by chance. */
const FEW_ROWS = 1000;
const LOW_COVERAGE = 85;
const HIGH_COVERAGE = 97;
const LARGE_BIAS = 10;
/** A group stands out if its error is at least this many times that of all rows. */
const STANDS_OUT = 1.5;
const MIN_GROUP_ROWS = 50;
const GOOD_ENOUGH = 15;

export function advise(evaluated: Evaluated): Advice[] {
  const advice = [adviseOnRows(evaluated), adviseOnProtocol(evaluated), ...adviseOnColumns(evaluated)];
  for (const target of PREDICTION_TARGETS) {
    const compared = compareAccuracy(evaluated, target);
    if (compared !== undefined) advice.push(...RULES.map((rule) => rule(evaluated, target, compared)));
  }
  const found = advice.filter((one) => one !== undefined);
  return found.length > 0 ? found : [ALL_WELL];
}

export function renderAdvice(advice: readonly Advice[]): string {
  const items = advice.map(({ title, text }) => `<li><strong>${escapeHtml(title)}</strong> ${escapeHtml(text)}</li>`);
  return `<section><h2>What to do next</h2><ol class="advice">${items.join('')}</ol></section>`;
}

const ALL_WELL: Advice = {
  title: 'Serve this model',
  text: 'No figure asks for a change. Train it with trivet model train on the same input, and let the service learn on from its own reports.',
};

function adviseOnRows({ table }: Evaluated): Advice | undefined {
  if (table.count >= FEW_ROWS) return undefined;
  return {
    title: 'Collect more rows',
    text: `There are ${table.count} observations. Below ${FEW_ROWS}, figures of single servers and loads move by chance. Report every request of a day, at its usual loads.`,
  };
}

/** Rows of one minute resemble each other, so a test row drawn at random has near copies among the training rows. */
function adviseOnProtocol({ protocol, table }: Evaluated): Advice | undefined {
  if (protocol !== 'random' || !hasTimes(table)) return undefined;
  return {
    title: 'Test in the order of time too',
    text: 'The rows have times. Test rows that are drawn at random have neighbours among the training rows, which flatters. --protocol time tests on later rows than it trains on, as a service has to.',
  };
}

const LOAD = ['numRequestRunning', 'kvCacheUsage'] as const;

function adviseOnColumns({ table }: Evaluated): (Advice | undefined)[] {
  const isConstant = (values: Float64Array) => !values.subarray(0, table.count).some((value) => value !== values[0]);
  const flat = LOAD.filter((name) => isConstant(table[name]));
  const hasQueue = table.numRequestWaiting.subarray(0, table.count).some((count) => count > 0);
  return [
    flat.length === 0
      ? undefined
      : {
          title: 'Send the load of the servers',
          text: `These are the same in every row: ${flat.join(', ')}. Without them a model cannot tell a busy server from an idle one.`,
        },
    hasQueue || flat.length > 0
      ? undefined
      : {
          title: 'Learn from busier hours too',
          text: 'No request waited in any row, so that nothing was learned of queues. Add observations of loads at which requests wait, before such a load is routed by these predictions.',
        },
    new Set(table.server.subarray(0, table.count)).size > 1 || table.servers[0] !== ''
      ? undefined
      : {
          title: 'Name the server of each row',
          text: 'No row names its server, so that a model cannot tell a slow server from a fast one. Send server_ip.',
        },
  ];
}

const isBetterThanBaselines: Rule = (_, target, { model, median, prior }) => {
  const best = Math.min(median.mape, prior.mape);
  if (model.mape < 0.95 * best) return undefined;
  return {
    title: `${nameOf(target)}: find what the times depend on`,
    text: `The mean error is ${format(model.mape)} %, that of the better baseline ${format(best)} %. Either the metrics do not carry what makes requests slow, or they are not those of the moment in which a request was sent. Check their times and units.`,
  };
};

const hasLowCoverage: Rule = ({ protocol }, target, { model }) => {
  if (model.p90Coverage >= LOW_COVERAGE) return undefined;
  const rest = ['time', 'prequential', 'leave-run-out', 'stale-metrics'].includes(protocol)
    ? 'Test rows differ from training rows: train on newer rows, and on every load that occurs.'
    : 'A running service widens its p90 by what it observes; --protocol time shows how far that goes.';
  return {
    title: `${nameOf(target)}: do not promise the p90 yet`,
    text: `Only ${format(model.p90Coverage)} % of the rows stayed below the predicted p90. ${rest}`,
  };
};

const hasHighCoverage: Rule = (_, target, { model }) => {
  if (model.p90Coverage <= HIGH_COVERAGE) return undefined;
  return {
    title: `${nameOf(target)}: the p90 is too careful`,
    text: `${format(model.p90Coverage)} % of the rows stayed below it. A router that compares the p90 keeps servers too empty; a running service narrows it by what it observes.`,
  };
};

const isBiased: Rule = (_, target, { model }) => {
  if (Math.abs(model.bias) <= LARGE_BIAS) return undefined;
  const direction = model.bias > 0 ? 'long' : 'short';
  return {
    title: `${nameOf(target)}: predictions are too ${direction}`,
    text: `By ${format(Math.abs(model.bias))} % in the mean. The test rows come from a faster or slower time than the training rows, or a few extreme times pull the mean: compare it with the median error, ${format(model.mdape)} %.`,
  };
};

const hasLongAnswers: Rule = (evaluated, target, { model }) => {
  if (target !== 'tpot') return undefined;
  const [short, , long] = listLengths(evaluated.table).map(
    ({ isOf }) => compareAccuracy(evaluated, 'tpot', isOf)?.model,
  );
  if (long !== undefined && long.rows >= MIN_GROUP_ROWS && long.mape > STANDS_OUT * model.mape)
    return {
      title: 'TPOT: long answers are predicted badly',
      text: `Answers of 16 tokens or more have ${format(long.mape)} %. A long answer lives through loads that come after it was sent: report the load while it runs, or go by the median error.`,
    };
  if (short === undefined || short.rows < MIN_GROUP_ROWS || short.mape <= STANDS_OUT * (long?.mape ?? model.mape))
    return undefined;
  return {
    title: 'TPOT: look at longer answers only',
    text: `Answers of 2 or 3 tokens have ${format(short.mape)} %: one or two intervals are mostly the jitter of the network. Look at the row of 16 tokens or more.`,
  };
};

const hasSlowGroup: Rule = ({ table, answers }, target, { model }) => {
  const groups = [...Map.groupBy(answers[target], ({ row }) => table.server[row]!)];
  if (groups.length < 2) return undefined;
  const worst = groups
    .filter(([, rows]) => rows.length >= MIN_GROUP_ROWS)
    .map(([server, rows]) => ({ name: table.servers[server]!, mape: measureAccuracy(rows)!.mape }))
    .sort((a, b) => b.mape - a.mape)[0];
  if (worst === undefined || worst.mape <= Math.max(GOOD_ENOUGH, STANDS_OUT * model.mape)) return undefined;
  return {
    title: `${nameOf(target)}: look at server ${worst.name}`,
    text: `Its mean error is ${format(worst.mape)} %, that of all rows ${format(model.mape)} %. Another machine, model or setting needs a pod type of its own.`,
  };
};

/** Advises on the fifth of the rows with the most requests on their server. */
const isBadUnderLoad: Rule = ({ table, answers }, target, { model }) => {
  const sorted = [...answers[target]].sort((a, b) => loadOf(table, a) - loadOf(table, b));
  const busy = measureAccuracy(sorted.slice(Math.floor(0.8 * sorted.length)));
  if (busy === undefined || busy.rows < MIN_GROUP_ROWS || busy.mape <= Math.max(GOOD_ENOUGH, STANDS_OUT * model.mape))
    return undefined;
  return {
    title: `${nameOf(target)}: learn from busier hours`,
    text: `The fifth of the rows with the highest load has a mean error of ${format(busy.mape)} %, all rows ${format(model.mape)} %. Add observations of loads at which requests wait.`,
  };
};

const RULES: readonly Rule[] = [
  isBetterThanBaselines,
  hasLowCoverage,
  hasHighCoverage,
  isBiased,
  hasLongAnswers,
  hasSlowGroup,
  isBadUnderLoad,
];

function loadOf(table: ObservationTable, { row }: Answer): number {
  return table.numRequestRunning[row]! + table.numRequestWaiting[row]!;
}

function nameOf(target: PredictionTarget): string {
  return target.toUpperCase();
}

function format(percent: number): string {
  return percent.toFixed(1);
}
