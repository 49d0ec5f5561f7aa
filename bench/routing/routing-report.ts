/** One self-contained page about the policies: how times are distributed, no script, nothing loaded. */
import { escapeHtml, type Point, renderPlot } from '../../src/prediction/evaluation/plots.ts';
import { PAGE_STYLE } from '../../src/prediction/evaluation/report.ts';
import type { SimulatedObservation } from '../../src/prediction/simulator/simulate.ts';
import { endToEndMs } from './measure.ts';
import { formatGain, keepWindow, type Result, type Summary, type Window } from './results.ts';

const SHOWN = ['trivet', 'load+prefix', 'oracle', 'trees, p90', 'round-robin'];
const COLORS = `
.key .s3,.s3{color:#2e8b57}.key .s4,.s4{color:#9b59b6}.key .s5,.s5{color:#8a8f98}
figcaption .legend{flex-wrap:wrap}.line circle{display:none}
`;

export function renderRouting(results: readonly Result[], summaries: readonly Summary[], window: Window): string {
  const scenarios = [...new Set(results.map(({ scenario }) => scenario))];
  const sections = scenarios.map((scenario) => {
    const own = results.filter((result) => result.scenario === scenario);
    const lines = summaries.filter(({ pool, rate }) => pool === scenario.pool && rate === scenario.rate);
    return `<section><h2>Pool of ${scenario.pool} servers, ${scenario.rate} requests a second</h2>
${renderTable(lines)}
<div class="plots">${plotTimes('First token', own, window, ({ ttftMs }) => ttftMs)}${plotTimes('Whole answer', own, window, endToEndMs)}</div></section>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What routing by predictions is worth</title><style>${PAGE_STYLE}${COLORS}</style></head>
<body><main><h1>What routing by predictions is worth</h1>
<p>On the simulator, after a warm-up of ${window.fromMs / 1000} s; medians of the seeds in the tables, all seeds together in the plots.</p>
${sections.join('\n')}
</main></body></html>
`;
}

function renderTable(summaries: readonly Summary[]): string {
  const names = Object.keys(summaries[0]?.values ?? {}) as (keyof Summary['values'])[];
  const headings = [...names, 'regret ms', 'TTFT p50 beside load+prefix', 'whole answer p50'];
  const head = headings.map((heading) => `<th scope="col">${escapeHtml(heading)}</th>`).join('');
  const rows = summaries.map(({ policy, values, regretMs, ttftGain, endGain }) => {
    const cells = [...names.map((name) => values[name]), regretMs ?? '', formatGain(ttftGain), formatGain(endGain)];
    return `<tr><th scope="row">${escapeHtml(policy)}</th>${cells.map((cell) => `<td>${cell ?? ''}</td>`).join('')}</tr>`;
  });
  return `<div class="scroll"><table><thead><tr><td></td>${head}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
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
