/** Predicts the rows of a call in slices, all by one version of the model; other calls are answered between the slices. */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import { toInput } from './load-input.ts';
import { type ItemGroup, writeItem } from './prediction-answer.ts';
import { type PredictionRow, ROWS_A_TURN } from './read-rows.ts';
import { createRowEstimator, type RowEstimatorDependencies } from './row-estimator.ts';

export interface AskedRows {
  /** The target model that answers. */
  readonly targetModel: string;
  readonly rows: readonly PredictionRow[];
  /** The end of every item in JSON. */
  readonly itemEnd: string;
}

/**
 * Resolves with one item for each row, in their order. The items of one slice of rows are a group. Undefined if the served version
 * changed between two slices: one version must answer all rows of a call, or a router would compare servers by two models.
 */
export type AnswerRows = (asked: AskedRows) => Promise<ItemGroup[] | undefined>;

export function createRowAnswerer(dependencies: RowEstimatorDependencies): AnswerRows {
  const columns = createPredictColumns(ROWS_A_TURN);
  const estimateRows = createRowEstimator(dependencies);
  return async ({ targetModel, rows, itemEnd }) => {
    const groups: ItemGroup[] = [];
    let answering: string | undefined;
    for (let start = 0; start < rows.length; start += ROWS_A_TURN) {
      if (start > 0) await yieldToCalls();
      fillColumns(columns, rows, start);
      const { modelVersion, readTtft, readTpot } = estimateRows(targetModel, columns);
      answering ??= modelVersion;
      if (modelVersion !== answering) return undefined;
      const items: string[] = [];
      for (let row = 0; row < columns.count; row++) items.push(writeItem(readTtft(row), readTpot(row), itemEnd));
      const text = items.join(',');
      groups.push(rows.length > ROWS_A_TURN ? Buffer.from(text) : text);
    }
    return groups;
  };
}

function fillColumns(columns: PredictColumns, rows: readonly PredictionRow[], start: number): void {
  const count = Math.min(columns.capacity, rows.length - start);
  const servers: string[] = [];
  columns.count = count;
  columns.podTypes.length = 0;
  for (let i = 0; i < count; i++) {
    const input = toInput(rows[start + i]!);
    for (const name of METRIC_COLUMNS) columns[name][i] = input[name];
    columns.podType[i] = findPodType(columns.podTypes, input.podType);
    servers.push(input.serverIp);
  }
  fillServers(columns, servers);
}

/** A linear search, because routers have two or three pod types. */
function findPodType(podTypes: string[], podType: string): number {
  const known = podTypes.indexOf(podType);
  return known === -1 ? podTypes.push(podType) - 1 : known;
}

/** Encodes the names of servers, because the predictor finds servers by bytes. Most calls do not name any. */
function fillServers(columns: PredictColumns, servers: readonly string[]): void {
  const text = servers.join('');
  columns.source = Buffer.from(text);
  if (text === '') {
    columns.serverIpLength.fill(0, 0, servers.length);
    return;
  }
  let start = 0;
  for (const [row, server] of servers.entries()) {
    const length = Buffer.byteLength(server);
    columns.serverIpStart[row] = start;
    columns.serverIpLength[row] = length;
    start += length;
  }
}
