/** Limits a Predict call to 4,096 inputs (candidate servers), and adds their rows in any encoding. */
import { Failure } from '../../errors.ts';
import type { PredictColumns } from '../schema/columns.ts';

/** The most inputs of one call. */
export const MAX_INPUTS = 4096;

/** The metadata of an answer. */
export interface PredictSummary {
  readonly targetModel: string;
  readonly modelVersion: string;
  readonly omittedInputs: number;
}

export function tooManyInputs(): Failure {
  const limit = MAX_INPUTS.toLocaleString('en');
  return new Failure('invalid', `Cannot predict: inputs must be at most ${limit}, got more`, { field: 'inputs' });
}

/** Empties the columns for a new call; `source` has the bytes of its `server_ip`s. */
export function startColumns(columns: PredictColumns, source: Uint8Array): void {
  columns.count = 0;
  columns.source = source;
  // Not by `length = 0`, at which V8 deoptimizes the compiled code.
  while (columns.podTypes.length > 0) columns.podTypes.pop();
}

/** Adds a row with the proto3 default in each field, and returns its index. */
export function addRow(columns: PredictColumns): number {
  const row = columns.count;
  if (row === MAX_INPUTS) throw tooManyInputs();
  columns.count = row + 1;
  columns.inputId[row] = 0;
  const { metrics } = columns;
  for (let m = 0; m < metrics.length; m++) metrics[m]![row] = 0;
  columns.serverIpStart[row] = 0;
  columns.serverIpLength[row] = 0;
  return row;
}
