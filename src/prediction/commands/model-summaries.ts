import { formatTable } from '../../command-line/output.ts';
import type { TargetSummary } from '../model/describe-model.ts';

/** What a model learned, for people. */
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
  const physics = summaries.filter(({ imported }) => imported === undefined).map(formatPhysics);
  const imported = summaries.flatMap(formatImported);
  return [
    table,
    ...(physics.length > 0 ? [`Physics\n${physics.join('\n')}`] : []),
    ...(imported.length > 0 ? [`Imported\n${imported.join('\n')}`] : []),
  ].join('\n\n');
}

function formatPhysics({ podType, target, physics }: TargetSummary): string {
  const prices = Object.entries(physics).map(([name, price]) => `${Number(price.toPrecision(3))} × ${name}`);
  return `  ${target.toUpperCase()} (${podType}) ms = ${prices.join(' + ')}`;
}

function formatImported({ podType, target, imported }: TargetSummary): string[] {
  if (imported === undefined) return [];
  const { library, transform, unit, features } = imported;
  const says = transform === 'identity' ? unit : `${transform} of ${unit}`;
  const names = Object.entries(features).map(([name, from]) => (name === from ? name : `${name}=${from}`));
  return [`  ${target.toUpperCase()} (${podType}) by ${library}, in ${says}, from ${names.join(', ')}`];
}
