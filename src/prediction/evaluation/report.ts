/** Renders the report of an evaluation as one self-contained HTML page. */
import type { LatencyModel } from '../model/model.ts';
import { type ObservationTable, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { escapeHtml, type Plot, type Point, renderPlot } from './plots.ts';
import { advise, renderAdvice } from './report-advice.ts';
import { answerBaselines } from './report-baselines.ts';
import { PAGE_STYLE } from './report-style.ts';
import { type Evaluation, renderGroups, renderLengths, renderOverall } from './report-tables.ts';

export interface ReportInput {
  readonly protocol: string;
  readonly inputs: readonly string[];
  readonly table: ObservationTable;
  readonly answers: Answers;
  /** The served version as a further baseline. */
  readonly served?: LatencyModel | undefined;
}

export function renderReport(input: ReportInput): string {
  const { table, answers } = input;
  const { served } = input;
  const evaluation: Evaluation = {
    table,
    answers,
    baselines: answerBaselines(table, answers, served),
    servedId: served?.id,
  };
  const title = `Prediction accuracy, protocol ${input.protocol}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${PAGE_STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>
<p>${input.table.count} observations from ${input.inputs.map((path) => `<code>${escapeHtml(path)}</code>`).join(', ')}. ${escapeHtml(ABOUT[input.protocol] ?? '')}</p>
${ABOUT_BASELINES}
${served === undefined ? '' : ABOUT_SERVED}
${renderOverall(evaluation)}
${ABOUT_FIGURES}
${renderAdvice(advise({ ...evaluation, protocol: input.protocol }))}
${PREDICTION_TARGETS.map((target) => renderTarget(target, input)).join('\n')}
${renderLengths(evaluation)}
${renderGroups(evaluation)}
</main></body></html>
`;
}

const ABOUT_BASELINES =
  '<p>A model is worth its trouble where it beats both: the median, which answers every request with the median of all rows (the test rows too), and the prior, which a service answers with before it has learned anything.</p>';

const ABOUT_SERVED =
  '<p>The served version answers alone, without the reports after its training. It may have been trained on the test rows, which flatters it.</p>';

const ABOUT_FIGURES = `<details><summary>What the figures mean</summary><dl>
<dt>MAPE</dt><dd>The mean of the relative errors, each |predicted − observed| ÷ observed. MdAPE is their median.</dd>
<dt>WAPE</dt><dd>The sum of |predicted − observed| divided by the sum of the observed times: long times count more.</dd>
<dt>bias</dt><dd>The mean of (predicted − observed) ÷ observed. Above 0, predictions are too long.</dd>
<dt>below p50, below p90</dt><dd>The share of observed times at or below that quantile. 50 and 90 are right.</dd>
<dt>p90 pinball</dt><dd>The loss that the true p90 makes smallest, divided by the mean observed time. Less is better.</dd>
</dl></details>`;

const ABOUT: Readonly<Record<string, string>> = {
  random: 'A tenth of the rows, drawn at random, tests a model of the others; five times.',
  time: 'The last 30 % of the rows of each run test a model of the first 70 %, in order; its predictions are adjusted, as in service, by the times that were known before each.',
  prequential: 'Each row is predicted before it is learned from.',
  'leave-load-out': 'Rows of each band of load test a model that was trained on the other bands only.',
  'leave-server-out': 'Rows of each server test a model that was trained on the other servers only.',
  'leave-run-out':
    'Rows of the runs that were held out test a model of the other runs, in order; its predictions are adjusted, as in service, by the times that were known before each.',
  'stale-metrics':
    'As time, but the last 30 % are predicted by metrics of their servers that are old: what the rows before them said.',
};

function renderTarget(target: PredictionTarget, { table, answers }: ReportInput): string {
  const answered = answers[target];
  if (answered.length === 0) return '';
  const plots = [
    plotScatter(answered),
    plotErrorByLoad(answered, table),
    plotCalibration(answered, table),
    plotOverTime(answered),
  ];
  return `<section><h2>${target === 'ttft' ? 'Time to first token' : 'Time per output token'}</h2><div class="plots">${plots.map(renderPlot).join('')}</div></section>`;
}

/** More dots than this only make the page larger. */
const MAX_DOTS = 1500;

function plotScatter(answered: readonly Answer[]): Plot {
  const every = Math.ceil(answered.length / MAX_DOTS);
  const points = answered
    .filter((_, i) => i % every === 0)
    .map((answer) => ({ x: answer.observedMs, y: answer.predictedMs }));
  const times = points.flatMap((point) => [point.x, point.y]);
  const low = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
  const high = times.reduce((most, time) => Math.max(most, time), 0);
  return {
    title: 'Predicted against observed',
    xLabel: 'observed, ms',
    yLabel: 'predicted, ms',
    scale: 'log',
    yScale: 'log',
    series: [{ name: 'rows', color: 1, points, kind: 'dots' }],
    guides: [
      [
        { x: low, y: low },
        { x: high, y: high },
      ],
    ],
  };
}

interface Band {
  readonly load: number;
  readonly answers: readonly Answer[];
}

const BANDS = 8;

/** Splits rows into groups of equal size, by the requests at the server. */
function splitByLoad(answered: readonly Answer[], table: ObservationTable): Band[] {
  const loadOf = ({ row }: Answer) => table.numRequestRunning[row]! + table.numRequestWaiting[row]!;
  const sorted = [...answered].sort((a, b) => loadOf(a) - loadOf(b));
  const size = Math.ceil(sorted.length / BANDS);
  return Array.from({ length: Math.ceil(sorted.length / size) }, (_, b) => sorted.slice(b * size, (b + 1) * size)).map(
    (answers) => ({ load: answers.reduce((sum, answer) => sum + loadOf(answer), 0) / answers.length, answers }),
  );
}

function plotErrorByLoad(answered: readonly Answer[], table: ObservationTable): Plot {
  const bands = splitByLoad(answered, table).map((band) => ({
    load: band.load,
    accuracy: measureAccuracy(band.answers)!,
  }));
  const line = (pick: (accuracy: NonNullable<ReturnType<typeof measureAccuracy>>) => number): Point[] =>
    bands.map(({ load, accuracy }) => ({ x: load, y: pick(accuracy) }));
  return {
    title: 'Error by load',
    xLabel: 'requests running and waiting',
    yLabel: 'error, %',
    scale: 'linear',
    yScale: 'linear',
    series: [
      { name: 'mean', color: 1, points: line((a) => a.mape), kind: 'line' },
      { name: 'median', color: 2, points: line((a) => a.mdape), kind: 'line' },
    ],
    guides: [
      [
        { x: 0, y: 0 },
        { x: bands.at(-1)?.load ?? 1, y: 0 },
      ],
    ],
  };
}

function plotCalibration(answered: readonly Answer[], table: ObservationTable): Plot {
  const bands = splitByLoad(answered, table);
  const share = (band: Band, limit: (answer: Answer) => number) =>
    (100 * band.answers.filter((answer) => answer.observedMs <= limit(answer)).length) / band.answers.length;
  const last = bands.at(-1)?.load ?? 1;
  return {
    title: 'Calibration: observed below what was predicted',
    xLabel: 'requests running and waiting',
    yLabel: 'rows, %',
    scale: 'linear',
    yScale: 'linear',
    series: [
      { name: 'p90', color: 1, points: bands.map((b) => ({ x: b.load, y: share(b, (a) => a.p90Ms) })), kind: 'line' },
      {
        name: 'p50',
        color: 2,
        points: bands.map((b) => ({ x: b.load, y: share(b, (a) => a.predictedMs) })),
        kind: 'line',
      },
    ],
    guides: [
      [
        { x: 0, y: 90 },
        { x: last, y: 90 },
      ],
      [
        { x: 0, y: 50 },
        { x: last, y: 50 },
      ],
      [
        { x: 0, y: 0 },
        { x: 0, y: 100 },
      ],
    ],
  };
}

function plotOverTime(answered: readonly Answer[]): Plot {
  const sorted = [...answered].sort((a, b) => a.row - b.row);
  const size = Math.ceil(sorted.length / 40);
  const blocks = Array.from({ length: Math.ceil(sorted.length / size) }, (_, b) =>
    sorted.slice(b * size, (b + 1) * size),
  );
  const points = blocks.map((answers) => ({ x: answers[0]!.row, y: measureAccuracy(answers)!.mape }));
  return {
    title: 'Error over time',
    xLabel: 'row of the input',
    yLabel: 'mean error, %',
    scale: 'linear',
    yScale: 'linear',
    series: [{ name: 'mean', color: 1, points, kind: 'line' }],
    guides: [
      [
        { x: points[0]?.x ?? 0, y: 0 },
        { x: points.at(-1)?.x ?? 1, y: 0 },
      ],
    ],
  };
}

/** The styles of plots and tables, for other pages too. */
