/** Renders the errors of an evaluation as tables, by server, pod type and run, with those of the baselines. */
import { type ObservationTable, PREDICTION_TARGETS } from '../schema/observation-table.ts';
import type { Accuracy, Answers } from './accuracy.ts';
import { listLengths } from './answer-lengths.ts';
import { escapeHtml } from './plots.ts';
import { type Baselines, type Compared, compareAccuracy } from './report-baselines.ts';

export interface Evaluation {
  readonly table: ObservationTable;
  readonly answers: Answers;
  readonly baselines: Baselines;
  /** The id of the served version, if known. */
  readonly servedId?: string | undefined;
}

const COLUMNS: readonly (readonly [heading: string, pick: (accuracy: Accuracy) => number])[] = [
  ['MAPE %', (a) => a.mape],
  ['MdAPE %', (a) => a.mdape],
  ['WAPE %', (a) => a.wape],
  ['bias %', (a) => a.bias],
  ['below p50 %', (a) => a.p50Coverage],
  ['below p90 %', (a) => a.p90Coverage],
  ['p90 pinball %', (a) => a.p90Pinball],
];

export function renderOverall(evaluation: Evaluation): string {
  const rows = PREDICTION_TARGETS.map((target) =>
    renderRow([target.toUpperCase()], compareAccuracy(evaluation, target)),
  );
  return renderTable(evaluation, { label: 'Errors', lead: ['time'], rows });
}

/** Returns nothing if no length is known. */
export function renderLengths(evaluation: Evaluation): string {
  const rows = listLengths(evaluation.table).flatMap(({ tokens, isOf }) => {
    const compared = compareAccuracy(evaluation, 'tpot', isOf);
    return compared === undefined ? [] : [renderRow([tokens], compared)];
  });
  if (rows.length === 0) return '';
  return `<section><h2>TPOT by output tokens</h2>${renderTable(evaluation, { label: 'TPOT by output tokens', lead: ['tokens'], rows })}</section>`;
}

/** Longer lists cannot be read. */
const MAX_GROUPS = 40;

export function renderGroups(evaluation: Evaluation): string {
  const { table } = evaluation;
  return [
    renderGroup(evaluation, { title: 'By server', names: table.servers, groupOfRow: table.server }),
    renderGroup(evaluation, { title: 'By pod type', names: table.podTypes, groupOfRow: table.podType }),
    renderGroup(evaluation, { title: 'By run', names: table.runs, groupOfRow: table.run }),
  ].join('');
}

interface Grouping {
  readonly title: string;
  readonly names: readonly string[];
  readonly groupOfRow: ArrayLike<number>;
}

/** Returns nothing unless the test rows are of several groups. */
function renderGroup(evaluation: Evaluation, { title, names, groupOfRow }: Grouping): string {
  const counts = new Map<number, number>();
  for (const { row } of PREDICTION_TARGETS.flatMap((target) => evaluation.answers[target]))
    counts.set(groupOfRow[row]!, (counts.get(groupOfRow[row]!) ?? 0) + 1);
  if (counts.size < 2) return '';
  const busiest = [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_GROUPS);
  const groups = busiest
    .map(([group]) => group)
    .sort((a, b) => names[a]!.localeCompare(names[b]!, 'en', { numeric: true }));
  const rows = groups.flatMap((group) =>
    PREDICTION_TARGETS.flatMap((target) => {
      const compared = compareAccuracy(evaluation, target, (row) => groupOfRow[row] === group);
      return compared === undefined ? [] : [renderRow([names[group] || '(none)', target.toUpperCase()], compared)];
    }),
  );
  const left = counts.size > MAX_GROUPS ? `<p>The ${MAX_GROUPS} with the most rows, of ${counts.size}.</p>` : '';
  return `<section><h2>${title}</h2>${left}${renderTable(evaluation, { label: title, lead: ['name', 'time'], rows })}</section>`;
}

interface Table {
  readonly label: string;
  readonly lead: readonly string[];
  readonly rows: readonly string[];
}

/** On a narrow page, each row is shown as a card, in which each figure has the name of its column. */
function renderTable({ servedId }: Evaluation, { label, lead, rows }: Table): string {
  const names = lead.map((heading) => `<th scope="col" class="name">${heading}</th>`);
  const figures = ['rows', ...COLUMNS.map(([heading]) => heading)].map((heading) => `<th scope="col">${heading}</th>`);
  const head = [...names, ...figures].join('');
  const served =
    servedId === undefined ? '' : `, and for <span class="v">${escapeHtml(servedId)}</span>, which is served`;
  return `<table class="cards"><caption>${label}. Under each figure: the same for the <span class="m">median</span> of all rows, for the <span class="p">prior</span>${served}.</caption><thead><tr>${head}</tr></thead><tbody>${rows.join('')}</tbody></table>`;
}

function renderRow(names: readonly string[], compared: Compared | undefined): string {
  const heads = names.map((name) => `<th scope="row">${escapeHtml(name)}</th>`);
  const cells = compared === undefined ? [] : COLUMNS.map(([heading, pick]) => renderCell(heading, compared, pick));
  return `<tr>${heads.join('')}<td data-label="rows">${compared?.model.rows ?? 0}</td>${cells.join('')}</tr>`;
}

function renderCell(
  heading: string,
  { model, median, prior, served }: Compared,
  pick: (accuracy: Accuracy) => number,
): string {
  const text = (accuracy: Accuracy) => formatPercent(pick(accuracy));
  const line = (name: string, shade: string, accuracy: Accuracy) =>
    `<span class="${shade}"><em>${name} </em>${text(accuracy)}</span>`;
  const baselines = [line('median', 'm', median), line('prior', 'p', prior)];
  if (served !== undefined) baselines.push(line('served', 'v', served));
  return `<td data-label="${heading}"><span class="figure">${text(model)}</span>${baselines.join('')}</td>`;
}

/** Errors of a prior can be very large. */
function formatPercent(value: number): string {
  if (Math.abs(value) < 1000) return value.toFixed(1);
  return Math.abs(value) < 1e7 ? Math.round(value).toLocaleString('en') : value.toExponential(1);
}
