import { METRIC_COLUMNS } from '../columns.ts';
import { createLiveModel, type LiveModel } from '../live-model.ts';
import { createPriorModel } from '../model.ts';
import { type MetricColumns, type ObservationTable, observedTimes, selectRows, TARGETS } from '../observation-table.ts';
import { type TrainParameters, trainModel } from '../train-model.ts';
import type { Answers } from './accuracy.ts';

const REFIT_EVERY = 100;
/** A service that starts without a model learns its first ones earlier. */
const FIRST_REFITS = [30, 60];

/** Each row is predicted by what came before it, and then learned from; refitted every 100 rows. */
export function answerPrequentially(
  table: ObservationTable,
  rows: readonly number[],
  {
    parameters,
    onProgress,
    answers,
  }: {
    readonly parameters: TrainParameters;
    readonly onProgress: (text: string) => void;
    readonly answers: Answers;
  },
): void {
  const live = createLiveModel(createPriorModel());
  const refits = [0, ...FIRST_REFITS];
  for (let at = REFIT_EVERY; at < rows.length; at += REFIT_EVERY) refits.push(at);
  for (const [i, at] of refits.entries()) {
    onProgress(`prequential: ${at} of ${rows.length} rows`);
    if (at > 0) live.replaceModel(trainModel('evaluated@1', selectRows(table, rows.slice(0, at)), parameters));
    answerLive(live, table, rows.slice(at, refits[i + 1] ?? rows.length), answers);
  }
}

/** Answers rows one after the other as a running service would: after each, its observed times move the live state. */
export function answerLive(live: LiveModel, table: ObservationTable, rows: readonly number[], answers: Answers): void {
  const columns = { count: 1 } as MetricColumns;
  for (const name of METRIC_COLUMNS) columns[name] = new Float64Array(1);
  const addresses = table.servers.map((server) => Buffer.from(server));
  for (const row of rows) {
    for (const name of METRIC_COLUMNS) columns[name][0] = table[name][row]!;
    const podType = table.podTypes[table.podType[row]!]!;
    const foreseen = live.foresee(columns, podType, addresses[table.server[row]!]!);
    for (const target of TARGETS) {
      const observedMs = observedTimes(table, target)[row]!;
      if (!(observedMs > 0)) continue;
      const { medianMs } = foreseen[target];
      const p90Ms = live.targetOf(podType, target).toStatistic(medianMs, 'p90');
      answers[target].push({ row, observedMs, predictedMs: medianMs, p90Ms });
      live.observe(foreseen, target, observedMs);
    }
  }
}
