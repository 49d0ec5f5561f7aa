/** Reads and writes Predict in the JSON mapping of proto3. */
import {
  readJsonArray,
  readJsonDouble,
  readJsonInt32,
  readJsonObject,
  readJsonString,
  refuseUnknownField,
  toCamelCase,
  toJsonDouble,
} from '../../grpc/protobuf/json.ts';
import type { PredictColumns, PredictedColumns } from '../schema/columns.ts';
import { METRICS } from '../schema/input-fields.ts';
import { addRow, type PredictSummary, startColumns } from './predict-call.ts';

export interface JsonPredictResponse {
  readonly outputs: readonly {
    readonly inputId: number;
    readonly serverIp: string;
    readonly predictedTtftMillis: number | string;
    readonly predictedTpotMillis: number | string;
  }[];
  readonly metadata: PredictSummary;
}

/** The texts of the rows, collected until all rows are read. */
interface RowTexts {
  readonly podType: string[];
  readonly serverIp: string[];
}

type ReadInto = (value: unknown, name: string, row: number) => void;

/** Fills the columns and returns the target model. Accepts field names in camel case and as in the proto file. */
export function readJsonRequest(request: unknown, columns: PredictColumns): string {
  startColumns(columns, new Uint8Array(0));
  const texts: RowTexts = { podType: [], serverIp: [] };
  const readers = createReaders(columns, texts);
  let targetModel = '';
  for (const [key, value] of Object.entries(readJsonObject(request, 'request'))) {
    const name = toCamelCase(key);
    if (name === 'targetModel') targetModel = readJsonString(value, key);
    else if (name !== 'inputs') refuseUnknownField(key);
    else for (const [index, input] of readJsonArray(value, key).entries()) readInput(input, index);
  }
  fillPodTypes(columns, texts.podType);
  fillServerIps(columns, texts.serverIp);
  return targetModel;

  function readInput(input: unknown, index: number): void {
    const row = addRow(columns);
    texts.podType[row] = '';
    texts.serverIp[row] = '';
    for (const [key, value] of Object.entries(readJsonObject(input, `inputs[${index}]`))) {
      const read = readers.get(toCamelCase(key)) ?? refuseUnknownField(`inputs[${index}].${key}`);
      read(value, `inputs[${index}].${key}`, row);
    }
  }
}

function createReaders(columns: PredictColumns, texts: RowTexts): ReadonlyMap<string, ReadInto> {
  const intoInt32 =
    (column: Float64Array | Int32Array): ReadInto =>
    (value, name, row) => {
      column[row] = readJsonInt32(value, name);
    };
  const intoDouble =
    (column: Float64Array): ReadInto =>
    (value, name, row) => {
      column[row] = readJsonDouble(value, name);
    };
  const intoText =
    (column: string[]): ReadInto =>
    (value, name, row) => {
      column[row] = readJsonString(value, name);
    };
  const intoKind = { int32: intoInt32, double: intoDouble };
  return new Map<string, ReadInto>([
    ['inputId', intoInt32(columns.inputId)],
    ['podType', intoText(texts.podType)],
    ['serverIp', intoText(texts.serverIp)],
    ...METRICS.map(({ column, kind }) => [column, intoKind[kind](columns[column])] as const),
  ]);
}

function fillPodTypes(columns: PredictColumns, podTypes: readonly string[]): void {
  const distinct = [...new Set(podTypes)];
  const indexes = new Map(distinct.map((podType, index) => [podType, index]));
  columns.podTypes.push(...distinct);
  for (const [row, podType] of podTypes.entries()) columns.podType[row] = indexes.get(podType)!;
}

/** Encodes the addresses, because the predictor finds servers by bytes. */
function fillServerIps(columns: PredictColumns, serverIps: readonly string[]): void {
  columns.source = Buffer.from(serverIps.join(''), 'utf8');
  let start = 0;
  for (const [row, serverIp] of serverIps.entries()) {
    const length = Buffer.byteLength(serverIp, 'utf8');
    columns.serverIpStart[row] = start;
    columns.serverIpLength[row] = length;
    start += length;
  }
}

/** Writes every field, also one with its default, so that readers of JSON need not know what absence means. */
export function toJsonResponse(
  metadata: PredictSummary,
  columns: PredictColumns,
  predicted: PredictedColumns,
): JsonPredictResponse {
  const { source } = columns;
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
  const outputs = Array.from({ length: columns.count }, (_, row) => {
    const start = columns.serverIpStart[row]!;
    return {
      inputId: columns.inputId[row]!,
      serverIp: bytes.toString('utf8', start, start + columns.serverIpLength[row]!),
      predictedTtftMillis: toJsonDouble(predicted.ttftMs[row]!),
      predictedTpotMillis: toJsonDouble(predicted.tpotMs[row]!),
    };
  });
  return { outputs, metadata };
}
