/** One self-contained page about an evaluation: no script, nothing loaded, light and dark. */
import type { LatencyModel } from '../model/model.ts';
import { type ObservationTable, PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';
import { type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { escapeHtml, type Plot, type Point, renderPlot } from './plots.ts';
import { advise, renderAdvice } from './report-advice.ts';
import { answerBaselines } from './report-baselines.ts';
import { PAGE_STYLE } from './report-style.ts';
import { type Judged, renderGroups, renderLengths, renderOverall } from './report-tables.ts';

export interface ReportInput {
  readonly protocol: string;
  readonly inputs: readonly string[];
  readonly table: ObservationTable;
  readonly answers: Answers;
  /** The version that is served, to stand beside. */
  readonly served?: LatencyModel | undefined;
}

export function renderReport(input: ReportInput): string {
  const { table, answers } = input;
  const { served } = input;
  const judged: Judged = { table, answers, baselines: answerBaselines(table, answers, served), servedId: served?.id };
  const title = `Prediction accuracy, protocol ${input.protocol}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${PAGE_STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>
<p>${input.table.count} observations from ${input.inputs.map((path) => `<code>${escapeHtml(path)}</code>`).join(', ')}. ${escapeHtml(ABOUT[input.protocol] ?? '')}</p>
${ABOUT_BASELINES}
${served === undefined ? '' : ABOUT_SERVED}
${renderOverall(judged)}
${ABOUT_FIGURES}
${renderAdvice(advise({ ...judged, protocol: input.protocol }))}
${PREDICTION_TARGETS.map((target) => renderTarget(target, input)).join('\n')}
${renderLengths(judged)}
${renderGroups(judged)}
</main></body></html>
`;
}

const ABOUT_BASELINES =
  '<p>A model is worth its trouble where it beats both: the median, which answers every request with the median of all rows (and has seen the judged ones), and the prior, which a service answers with before it has learned anything.</p>';

const ABOUT_SERVED =
  '<p>The served version answers by itself, without what servers have shown since it was learned. It may have learned from the judged rows, which flatters it.</p>';

const ABOUT_FIGURES = `<details><summary>What the figures mean</summary><dl>
<dt>MAPE</dt><dd>The mean of the relative errors, each |predicted − observed| ÷ observed. MdAPE is their median.</dd>
<dt>WAPE</dt><dd>The sum of |predicted − observed| divided by the sum of the observed times: long times count more.</dd>
<dt>bias</dt><dd>The mean of (predicted − observed) ÷ observed. Above 0, predictions are too long.</dd>
<dt>below p50, below p90</dt><dd>The share of observed times at or below that quantile. 50 and 90 are right.</dd>
<dt>p90 pinball</dt><dd>The loss that the true p90 makes smallest, divided by the mean observed time. Less is better.</dd>
</dl></details>`;

const ABOUT: Readonly<Record<string, string>> = {
  random: 'A tenth of the rows, drawn at random, is judged by a model of the others; five times.',
  time: 'The last 30 % of the rows of each run are judged in order by a model of the first 70 %, corrected as in service by what was known before each.',
  prequential: 'Each row is predicted before it is learned from.',
  'leave-load-out': 'Rows of each band of load are judged by a model that has seen only the other bands.',
  'leave-server-out': 'Rows of each server are judged by a model that has seen only the other servers.',
  'leave-run-out':
    'Rows of the runs that were held out are judged in order by a model of the other runs, corrected as in service by what was known before each.',
  'stale-metrics':
    'As time, but the last 30 % are predicted by metrics of their servers that are old: what the rows before them said.',
};

function renderTarget(target: PredictionTarget, { table, answers }: ReportInput): string {
  const judged = answers[target];
  if (judged.length === 0) return '';
  const plots = [
    plotScatter(judged),
    plotErrorByLoad(judged, table),
    plotCalibration(judged, table),
    plotOverTime(judged),
  ];
  return `<section><h2>${target === 'ttft' ? 'Time to first token' : 'Time per output token'}</h2><div class="plots">${plots.map(renderPlot).join('')}</div></section>`;
}

/** More dots than this only make the page heavy. */
const MAX_DOTS = 1500;

function plotScatter(judged: readonly Answer[]): Plot {
  const every = Math.ceil(judged.length / MAX_DOTS);
  const points = judged
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

/** Equal numbers of rows, rising by the requests that the server had. */
function splitByLoad(judged: readonly Answer[], table: ObservationTable): Band[] {
  const loadOf = ({ row }: Answer) => table.numRequestRunning[row]! + table.numRequestWaiting[row]!;
  const sorted = [...judged].sort((a, b) => loadOf(a) - loadOf(b));
  const size = Math.ceil(sorted.length / BANDS);
  return Array.from({ length: Math.ceil(sorted.length / size) }, (_, b) => sorted.slice(b * size, (b + 1) * size)).map(
    (answers) => ({ load: answers.reduce((sum, answer) => sum + loadOf(answer), 0) / answers.length, answers }),
  );
}

function plotErrorByLoad(judged: readonly Answer[], table: ObservationTable): Plot {
  const bands = splitByLoad(judged, table).map((band) => ({
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

function plotCalibration(judged: readonly Answer[], table: ObservationTable): Plot {
  const bands = splitByLoad(judged, table);
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

function plotOverTime(judged: readonly Answer[]): Plot {
  const sorted = [...judged].sort((a, b) => a.row - b.row);
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

/** What the plots and tables of a page need; other pages may use it too. */
