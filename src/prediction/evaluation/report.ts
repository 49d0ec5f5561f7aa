/** One self-contained page about an evaluation: no script, nothing loaded, light and dark. */
import { type ObservationTable, TARGETS, type Target } from '../schema/observation-table.ts';
import { type Answer, type Answers, measureAccuracy } from './accuracy.ts';
import { escapeHtml, type Plot, type Point, renderPlot } from './plots.ts';
import { renderGroups, renderLengths, renderOverall } from './report-tables.ts';

export interface ReportInput {
  readonly protocol: string;
  readonly inputs: readonly string[];
  readonly table: ObservationTable;
  readonly answers: Answers;
}

export function renderReport(input: ReportInput): string {
  const title = `Prediction accuracy, protocol ${input.protocol}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${PAGE_STYLE}</style></head>
<body><main><h1>${escapeHtml(title)}</h1>
<p>${input.table.count} observations from ${input.inputs.map((path) => `<code>${escapeHtml(path)}</code>`).join(', ')}. ${escapeHtml(ABOUT[input.protocol] ?? '')}</p>
${renderOverall(input.answers)}
${TARGETS.map((target) => renderTarget(target, input)).join('\n')}
${renderLengths(input.table, input.answers)}
${renderGroups(input.table, input.answers)}
</main></body></html>
`;
}

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

function renderTarget(target: Target, { table, answers }: ReportInput): string {
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
export const PAGE_STYLE = `
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#5b6570;--grid:#e3e7eb;--card:#f7f8fa;--series-1:#2563c9;--series-2:#c2540a}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--ink:#e7eaee;--soft:#9aa5b1;--grid:#2b3138;--card:#1b1f25;--series-1:#6ea8ff;--series-2:#ffab6b}}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1040px;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2.5rem 0 .75rem}
p,.empty{color:var(--soft);max-width:70ch}code{font-size:.9em;overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .9rem;white-space:nowrap;text-align:right;border-bottom:1px solid var(--grid)}th[scope=row]{text-align:left}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1rem}
figure{margin:0;padding:1rem;background:var(--card);border:1px solid var(--grid);border-radius:10px}
figcaption{font-weight:600;margin-bottom:.4rem;display:flex;flex-wrap:wrap;gap:.3rem 1rem;justify-content:space-between}
.legend{font-weight:400;color:var(--soft);display:flex;gap:.9rem}.key{display:flex;align-items:center;gap:.35rem}
.key i{width:.8rem;height:.2rem;border-radius:1px;background:currentColor}
.key .s1,.s1{color:var(--series-1)}.key .s2,.s2{color:var(--series-2)}
svg{width:100%;height:auto;display:block}.grid{stroke:var(--grid)}.guide{stroke:var(--soft);stroke-dasharray:4 4}
.tick,.label{fill:var(--soft);font-size:11px}.label{font-size:12px}
.dots circle{fill:currentColor;fill-opacity:.35}.line path{fill:none;stroke:currentColor;stroke-width:2}.line circle{fill:currentColor}
@media (max-width:500px){main{padding:1.25rem .75rem 3rem}figure{padding:.5rem}.tick{font-size:16px}.label{font-size:17px}}
`;
