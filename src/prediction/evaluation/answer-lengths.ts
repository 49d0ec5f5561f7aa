/** Measures accuracy by the number of output tokens. */
import type { ObservationTable } from '../schema/observation-table.ts';
import { type Accuracy, type Answer, measureAccuracy } from './accuracy.ts';

/** The first number of output tokens of each range. For answers of two tokens, TPOT is mostly network jitter. */
const FIRST_TOKENS = [2, 4, 16] as const;

export interface LengthAccuracy {
  /** `2-3`, `4-15` or `16+` output tokens. */
  readonly tokens: string;
  readonly accuracy: Accuracy;
}

/** Returns the errors of TPOT by the length of the answer; empty without known lengths. */
export function measureByLength(table: ObservationTable, answers: readonly Answer[]): LengthAccuracy[] {
  return listLengths(table).flatMap(({ tokens, isOf }) => {
    const accuracy = measureAccuracy(answers.filter(({ row }) => isOf(row)));
    return accuracy === undefined ? [] : [{ tokens, accuracy }];
  });
}

export interface AnswerLength {
  readonly tokens: LengthAccuracy['tokens'];
  readonly isOf: (row: number) => boolean;
}

export function listLengths({ outputTokens }: Pick<ObservationTable, 'outputTokens'>): AnswerLength[] {
  return FIRST_TOKENS.map((first, i) => {
    const next = FIRST_TOKENS[i + 1] ?? Number.POSITIVE_INFINITY;
    return {
      tokens: next === Number.POSITIVE_INFINITY ? `${first}+` : `${first}-${next - 1}`,
      isOf: (row) => outputTokens[row]! >= first && outputTokens[row]! < next,
    };
  });
}
