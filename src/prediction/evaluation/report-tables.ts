/** Errors as tables: of all rows, and of each server, pod type and run where there are several. */
import { type ObservationTable, TARGETS } from '../schema/observation-table.ts';
import { type Accuracy, type Answers, measureAccuracy } from './accuracy.ts';
import { measureByLength } from './answer-lengths.ts';
import { escapeHtml } from './plots.ts';

const COLUMNS: readonly (readonly [heading: string, pick: (accuracy: Accuracy) => number])[] = [
  ['MAPE %', (a) => a.mape],
  ['MdAPE %', (a) => a.mdape],
  ['WAPE %', (a) => a.wape],
  ['bias %', (a) => a.bias],
  ['below p50 %', (a) => a.p50Coverage],
  ['below p90 %', (a) => a.p90Coverage],
  ['p90 pinball %', (a) => a.p90Pinball],
];

export function renderOverall(answers: Answers): string {
  const rows = TARGETS.map((target) => renderRow([target.toUpperCase()], measureAccuracy(answers[target])));
  return renderTable('Errors', [''], rows);
}

/** Nothing where no length is known. */
export function renderLengths(table: ObservationTable, answers: Answers): string {
  const rows = measureByLength(table, answers.tpot).map(({ tokens, accuracy }) => renderRow([tokens], accuracy));
  if (rows.length === 0) return '';
  return `<section><h2>TPOT by output tokens</h2>${renderTable('TPOT by output tokens', [''], rows)}</section>`;
}

/** A longer list is not readable. */
const MAX_GROUPS = 40;

export function renderGroups(table: ObservationTable, answers: Answers): string {
  return [
    renderGroup('By server', table.servers, table.server, answers),
    renderGroup('By pod type', table.podTypes, table.podType, answers),
    renderGroup('By run', table.runs, table.run, answers),
  ].join('');
}

/** Nothing unless the judged rows are of several. */
function renderGroup(title: string, names: readonly string[], groupOfRow: ArrayLike<number>, answers: Answers): string {
  const counts = new Map<number, number>();
  for (const { row } of TARGETS.flatMap((target) => answers[target]))
    counts.set(groupOfRow[row]!, (counts.get(groupOfRow[row]!) ?? 0) + 1);
  if (counts.size < 2) return '';
  const busiest = [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_GROUPS);
  const groups = busiest
    .map(([group]) => group)
    .sort((a, b) => names[a]!.localeCompare(names[b]!, 'en', { numeric: true }));
  const rows = groups.flatMap((group) =>
    TARGETS.flatMap((target) => {
      const accuracy = measureAccuracy(answers[target].filter(({ row }) => groupOfRow[row] === group));
      return accuracy === undefined ? [] : [renderRow([names[group] || '(none)', target.toUpperCase()], accuracy)];
    }),
  );
  const left = counts.size > MAX_GROUPS ? `<p>The ${MAX_GROUPS} with the most rows, of ${counts.size}.</p>` : '';
  return `<section><h2>${title}</h2>${left}${renderTable(title, ['', ''], rows)}</section>`;
}

/** Focusable, since it scrolls where the page is narrow. */
function renderTable(label: string, lead: readonly string[], rows: readonly string[]): string {
  const headings = ['rows', ...COLUMNS.map(([heading]) => heading)];
  const head = [...lead.map(() => '<td></td>'), ...headings.map((heading) => `<th scope="col">${heading}</th>`)];
  return `<div class="scroll" role="region" tabindex="0" aria-label="${label}"><table><thead><tr>${head.join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function renderRow(names: readonly string[], accuracy: Accuracy | undefined): string {
  const heads = names.map((name) => `<th scope="row">${escapeHtml(name)}</th>`);
  const values = accuracy === undefined ? [] : COLUMNS.map(([, pick]) => `<td>${pick(accuracy).toFixed(1)}</td>`);
  return `<tr>${heads.join('')}<td>${accuracy?.rows ?? 0}</td>${values.join('')}</tr>`;
}
