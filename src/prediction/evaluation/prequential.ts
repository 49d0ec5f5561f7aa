import { createPriorModel } from '../model.ts';
import { type ObservationTable, selectRows } from '../observation-table.ts';
import { type TrainParameters, trainModel } from '../train-model.ts';
import type { Answers } from './accuracy.ts';
import { answerRows } from './answer-rows.ts';

const REFIT_EVERY = 100;

/** Each row is predicted by a model of the rows before it, and then learned from; refitted every 100 rows. */
export function answerPrequentially(
  table: ObservationTable,
  options: { readonly parameters: TrainParameters; readonly onProgress: (text: string) => void },
  answers: Answers,
): void {
  let model = createPriorModel();
  for (let from = 0; from < table.count; from += REFIT_EVERY) {
    options.onProgress(`prequential: ${from} of ${table.count} rows`);
    const rows = Array.from({ length: from }, (_, i) => i);
    if (from > 0) model = trainModel('evaluated@1', selectRows(table, rows), options.parameters);
    const next = Array.from({ length: Math.min(REFIT_EVERY, table.count - from) }, (_, i) => from + i);
    answerRows(model, table, next, answers);
  }
}
