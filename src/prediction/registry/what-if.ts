/** Predicts for a request and a load that a person typed, and explains the prediction. */
import { findTextFault } from '../../database/storable-text.ts';
import { Failure } from '../../errors.ts';
import type { PredictionExplanation } from '../model/explain.ts';
import { createInputColumns, explainInput, fillInput } from '../model/explain-input.ts';
import { createPriorModel } from '../model/model.ts';
import { MAX_NAME_BYTES } from '../observations/event-draft.ts';
import type { SwappablePredictor } from '../online/predictor.ts';
import type { AnswerStatistic } from '../schema/columns.ts';
import { fillMetrics, INPUT_FIELDS, isUsableNumber, MAX_COUNT, type Metric } from '../schema/input-fields.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { PREDICTION_TARGETS, type PredictionTarget } from '../schema/observation-table.ts';

/** The fields of a `PredictInput` that affect a prediction. */
export const WHAT_IF_FIELDS = INPUT_FIELDS.filter((field) => field.of !== 'call');

const SHOWN_STATISTICS: readonly AnswerStatistic[] = ['mean', 'p10', 'p50', 'p90', 'p95', 'p99'];

export interface WhatIfTarget {
  readonly target: PredictionTarget;
  /** The answer of Predict. */
  readonly answerMs: number;
  readonly statistics: readonly { readonly name: AnswerStatistic; readonly ms: number }[];
  readonly explanation: PredictionExplanation;
  /** The time that the explained parts give. The answer of Predict differs from it by later reports and by the statistic. */
  readonly explainedMs: number;
}

export interface WhatIfAnswer {
  readonly modelVersion: string;
  readonly statistic: AnswerStatistic;
  readonly targets: readonly WhatIfTarget[];
}

/** `texts` are by field name; an empty number is 0. Throws `invalid` with the unusable field. */
export function predictWhatIf(
  predictor: SwappablePredictor,
  name: string,
  texts: Readonly<Record<string, string>>,
): WhatIfAnswer {
  const input = readInput(texts);
  const columns = createInputColumns();
  fillInput(columns, input);
  const model = predictor.hasModel(name) ? predictor.live(name).model : createPriorModel();
  const { modelVersion, predicted } = predictor.predictBatch(name, columns, [model.statistic, ...SHOWN_STATISTICS]);
  const explanations = explainInput(model, columns, input.serverIp);
  const targets = PREDICTION_TARGETS.map((target): WhatIfTarget => {
    const [answerMs, ...times] = predicted.map((one) => one[target === 'ttft' ? 'ttftMs' : 'tpotMs'][0]!);
    return {
      target,
      answerMs: answerMs!,
      statistics: SHOWN_STATISTICS.map((statistic, at) => ({ name: statistic, ms: times[at]! })),
      explanation: explanations[target],
      explainedMs: sumExplanation(explanations[target]),
    };
  });
  return { modelVersion, statistic: model.statistic, targets };
}

function sumExplanation({ physics, treeFactors, serverFactor, treeMilliseconds = {} }: PredictionExplanation): number {
  const [terms, factors] = [Object.values(physics), Object.values(treeFactors)];
  const isEmpty = terms.length === 0 && factors.length === 0;
  const base = terms.length === 0 ? 1 : sum(terms);
  const product = isEmpty ? 0 : factors.reduce((all, factor) => all * factor, base) * serverFactor;
  return product + sum(Object.values(treeMilliseconds));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function readInput(texts: Readonly<Record<string, string>>): ObservedInput {
  return {
    podType: readText('pod_type', texts.pod_type),
    ...fillMetrics((metric) => readNumber(metric, texts[metric.name])),
    serverIp: readText('server_ip', texts.server_ip),
  };
}

function readNumber({ name, kind }: Metric, text = ''): number {
  const trimmed = text.trim();
  const value = trimmed === '' ? 0 : Number(trimmed);
  const isCount = kind === 'int32';
  if (isUsableNumber(value) && (!isCount || value <= MAX_COUNT)) return value;
  const allowed = isCount ? `a number from 0 to ${MAX_COUNT}` : 'a finite number of 0 or more';
  throw new Failure('invalid', `${name} must be ${allowed}, got "${trimmed.slice(0, 40)}"`, { field: name });
}

function readText(name: string, text = ''): string {
  const fault = findTextFault(text);
  if (fault !== undefined) throw new Failure('invalid', `${name} ${fault}`, { field: name });
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_NAME_BYTES) return text;
  const message = `${name} must have at most ${MAX_NAME_BYTES} bytes, got ${bytes}`;
  throw new Failure('invalid', message, { field: name });
}
