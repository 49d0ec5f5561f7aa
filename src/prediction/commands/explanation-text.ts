/** Prints the parts of each prediction (`--explain`). */
import type { PredictionExplanation } from '../model/explain.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';

export interface ExplainedAnswer extends Readonly<Record<PredictionTarget, number>> {
  readonly line: number;
  readonly serverIp: string;
}

export function formatExplanation(
  answer: ExplainedAnswer,
  explanations: Readonly<Record<PredictionTarget, PredictionExplanation>>,
): string {
  const texts = PREDICTION_TARGETS.map((target) => {
    return `  ${target.toUpperCase()} ${answer[target].toFixed(2)} ms = ${formatParts(explanations[target])}`;
  });
  return `Line ${answer.line} ${answer.serverIp}\n${texts.join('\n')}`;
}

function formatParts({ physics, treeFactors, serverFactor, treeMilliseconds = {} }: PredictionExplanation): string {
  const terms = Object.entries(physics).map(([name, ms]) => `${ms.toFixed(1)} ${name}`);
  const factors = Object.entries(treeFactors).map(([name, factor]) => `${factor.toFixed(2)} ${name}`);
  const server = serverFactor === 1 ? [] : [`${serverFactor.toFixed(2)} server`];
  const product = [...(terms.length > 0 ? [`(${terms.join(' + ')})`] : []), ...factors, ...server].join(' × ');
  const added = Object.entries(treeMilliseconds).map(([name, ms]) => `${ms.toFixed(2)} ${name}`);
  return [...(product === '' ? [] : [product]), ...added].join(' + ').replaceAll('+ -', '− ');
}
