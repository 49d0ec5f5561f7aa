/** Writes one self-contained page about the policies, without scripts and external files: how times are distributed. */
import { escapeHtml, type Point, renderPlot } from '../../src/prediction/evaluation/plots.ts';
import { PAGE_STYLE } from '../../src/prediction/evaluation/report-style.ts';
import type { SimulatedObservation } from '../../src/prediction/simulator/simulate.ts';
import { endToEndMs, SLO } from './measure.ts';
import { formatGain, keepWindow, type Result, type Summary, type Window } from './results.ts';

const SHOWN = ['trivet', 'load+prefix', 'oracle', 'trees, p90', 'round-robin'];
/** Titles of the pools that have a name. */
const TITLES: Readonly<Record<string, string>> = {
  like: 'Four servers alike',
  unlike: 'One large, two medium and one small server',
  given: 'The given servers',
};
const COLORS = `
.key .s3,.s3{color:#2e8b57}.key .s4,.s4{color:#9b59b6}.key .s5,.s5{color:#8a8f98}
figcaption .legend{flex-wrap:wrap}.line circle{display:none}
main{max-width:1240px}.scroll th,.scroll td{white-space:nowrap;padding:.35rem .6rem}
thead th{font-weight:600;color:var(--soft)}thead th[colspan]{text-align:center}
.scroll tbody th{position:sticky;left:0;background:var(--page)}
`;

export function renderRouting(results: readonly Result[], summaries: readonly Summary[], window: Window): string {
  const scenarios = [...new Set(results.map(({ scenario }) => scenario))];
  const sections = scenarios.map((scenario) => {
    const own = results.filter((result) => result.scenario === scenario);
    const lines = summaries.filter(({ pool, rate }) => pool === scenario.pool && rate === scenario.rate);
    return `<section><h2>${escapeHtml(TITLES[scenario.pool] ?? scenario.pool)}, ${scenario.rate} requests a second</h2>
${renderTable(lines)}
<div class="plots">${plotTimes('First token', own, window, ({ ttftMs }) => ttftMs)}${plotTimes('Whole answer', own, window, endToEndMs)}</div></section>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What routing by predictions is worth</title><style>${PAGE_STYLE}${COLORS}</style></head>
<body><main><h1>What routing by predictions is worth</h1>
<p>On the simulator, after a warm-up of ${window.fromMs / 1000} s; medians of the seeds in the tables (least…most of them in brackets), all seeds together in the plots. Good requests have their first token within ${SLO.ttftMs.toLocaleString('en-US')} ms and a token every ${SLO.tpotMs} ms.</p>
${sections.join('\n')}
</main></body></html>
`;
}

const QUANTILES = ['p50', 'p95', 'p99'] as const;
const TIMES = [
  { title: 'TTFT, ms', name: 'ttft', digits: 0 },
  { title: 'TPOT, ms', name: 'tpot', digits: 1 },
  { title: 'Whole answer, ms', name: 'end', digits: 0 },
] as const;

function renderTable(summaries: readonly Summary[]): string {
  const groups = TIMES.map(({ title }) => `<th scope="colgroup" colspan="${QUANTILES.length}">${title}</th>`).join('');
  const gains = '<th scope="colgroup" colspan="2">p50 beside load+prefix</th>';
  const others = ['good, %', 'regret, ms'].map((title) => `<th scope="col" rowspan="2">${title}</th>`).join('');
  const titles = ['TTFT', 'answer', ...TIMES.flatMap(() => QUANTILES)];
  const columns = titles.map((title) => `<th scope="col">${title}</th>`).join('');
  const head = `<tr><td rowspan="2"></td>${gains}${groups}${others}</tr><tr>${columns}</tr>`;
  return `<div class="scroll"><table><thead>${head}</thead><tbody>${summaries.map(renderRow).join('')}</tbody></table></div>`;
}

function renderRow({ policy, values, regretMs, ttftGain, endGain }: Summary): string {
  const times = TIMES.flatMap(({ name, digits }) =>
    QUANTILES.map((quantile) => formatNumber(values[`${name} ${quantile}`], digits)),
  );
  const regret = regretMs === undefined ? '' : formatNumber(regretMs, 0);
  const cells = [formatGain(ttftGain) ?? '', formatGain(endGain) ?? '', ...times];
  const all = [...cells, formatNumber(values['good %'], 1), regret];
  return `<tr><th scope="row">${escapeHtml(policy)}</th>${all.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function formatNumber(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const SHARES = [1, 2, 5, ...Array.from({ length: 17 }, (_, i) => 10 + 5 * i), 92, 94, 96, 97, 98, 99];

function plotTimes(
  title: string,
  results: readonly Result[],
  window: Window,
  read: (observation: SimulatedObservation) => number,
): string {
  const series = SHOWN.flatMap((policy, i) => {
    const result = results.find((candidate) => candidate.policy === policy);
    if (result === undefined) return [];
    const points = listQuantiles(result.runs.flatMap((run) => keepWindow(run, window)).map(read));
    return [{ name: policy, color: i + 1, points, kind: 'line' as const }];
  });
  const labels = { xLabel: 'share of requests that took less, %', yLabel: 'milliseconds' };
  return renderPlot({ title, ...labels, scale: 'linear', yScale: 'log', series, guides: [] });
}

function listQuantiles(times: readonly number[]): Point[] {
  const sorted = Float64Array.from(times).sort();
  return SHARES.map((share) => ({ x: share, y: sorted[Math.floor((share / 100) * (sorted.length - 1))] ?? 0 }));
}
