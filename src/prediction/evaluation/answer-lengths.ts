import type { ObservationTable } from '../schema/observation-table.ts';
import { type Accuracy, type Answer, measureAccuracy } from './accuracy.ts';

/** From so many output tokens up to the next: the jitter of a network makes up most of the time per token of two tokens. */
const FIRST_TOKENS = [2, 4, 16] as const;

export interface LengthAccuracy {
  /** `2-3`, `4-15` or `16+` output tokens. */
  readonly tokens: string;
  readonly accuracy: Accuracy;
}

/** Errors of TPOT by the length of the answer; empty where no length is known. */
export function measureByLength(table: ObservationTable, answers: readonly Answer[]): LengthAccuracy[] {
  return FIRST_TOKENS.flatMap((first, i) => {
    const next = FIRST_TOKENS[i + 1] ?? Number.POSITIVE_INFINITY;
    const accuracy = measureAccuracy(
      answers.filter(({ row }) => table.outputTokens[row]! >= first && table.outputTokens[row]! < next),
    );
    if (accuracy === undefined) return [];
    return [{ tokens: next === Number.POSITIVE_INFINITY ? `${first}+` : `${first}-${next - 1}`, accuracy }];
  });
}
