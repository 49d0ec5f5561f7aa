/** Prints what a model learned: its physics, its trees and its errors. */
import { formatTable } from '../../command-line/output.ts';
import type { TargetSummary } from '../model/describe-model.ts';

export function formatSummaries(summaries: readonly TargetSummary[]): string {
  const table = formatTable(
    ['pod type', 'target', 'rows', 'trees', 'held-out rows', 'MAPE %', 'MdAPE %'],
    summaries.map(({ podType, target, rows, trees, validation }) => [
      podType,
      target.toUpperCase(),
      rows,
      trees,
      validation?.rows,
      validation?.mape.toFixed(1),
      validation?.mdape.toFixed(1),
    ]),
  );
  const own = summaries.filter(({ imported }) => imported === undefined);
  const imported = summaries.flatMap(formatImported);
  return [
    table,
    ...(own.length > 0 ? [formatPhysics(own)] : []),
    ...(imported.length > 0 ? [`Imported\n${imported.join('\n')}`] : []),
  ].join('\n\n');
}

/** The cost of one unit of each term; the physics is the sum of these terms. */
function formatPhysics(summaries: readonly TargetSummary[]): string {
  const terms = [...new Set(summaries.flatMap(({ physics }) => Object.keys(physics)))];
  const columns = summaries.map(({ podType, target }) => `${target.toUpperCase()} (${podType})`);
  const rows = terms.map((term) => [
    term,
    ...summaries.map(({ physics: { [term]: price } }) => (price === undefined ? null : Number(price.toPrecision(3)))),
  ]);
  return formatTable(['physics: ms for one', ...columns], rows);
}

function formatImported({ podType, target, imported }: TargetSummary): string[] {
  if (imported === undefined) return [];
  const { library, transform, unit, features } = imported;
  const says = transform === 'identity' ? unit : `${transform} of ${unit}`;
  const names = Object.entries(features).map(([name, from]) => (name === from ? name : `${name}=${from}`));
  return [`  ${target.toUpperCase()} (${podType}) by ${library}, in ${says}, from ${names.join(', ')}`];
}

/** `0.73` → `× 2.08`: writes a mean difference of logarithms as a factor. */
export function formatLogError(logError: unknown): string {
  return typeof logError === 'number' ? `× ${Math.exp(logError).toFixed(2)}` : String(logError);
}
