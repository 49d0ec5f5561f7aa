/**
 * Replays a log of requests through the real program over gRPC: each request asks Predict when it was sent, and its
 * dispatch, first token and end are reported when they happened. The errors of the served medians are compared with those of
 * `model evaluate --protocol prequential` for the same rows.
 *
 *   node bench/accuracy-live.ts --input FILE --kv-capacity-tokens N [--format requests] [--scale 1] [--refit-rows 100]
 *
 * `--scale 4` replays a log of servers that are four times as fast, in TTFT and TPOT too; `prequential` evaluates the same fast
 * log. The two differ since a service takes time for a refit, during which other requests are served, and for the reports, which
 * come in separate calls; and since a service serves a refit only when it is better.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../src/prediction/evaluation/accuracy.ts';
import { bootstrapMean } from '../src/prediction/evaluation/bootstrap.ts';
import { evaluate } from '../src/prediction/evaluation/protocols.ts';
import { PROMPT_REPORTING } from '../src/prediction/evaluation/report-times.ts';
import type { Format } from '../src/prediction/formats/read-observations.ts';
import { readTable } from '../src/prediction/formats/read-table.ts';
import { METRIC_COLUMNS } from '../src/prediction/schema/columns.ts';
import {
  listRows,
  type ObservationTable,
  observedTimes,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../src/prediction/schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../src/prediction/training/train-model.ts';
import { connectRaw, type RawClient } from '../test/support/grpc/grpc-client.ts';
import {
  decodeMessage,
  encodeMessage,
  messageType,
  PredictRequest,
  PredictResponse,
} from '../test/support/grpc/proto-messages.ts';
import { startProgram } from '../test/support/programs/start-program.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    input: { type: 'string' },
    format: { type: 'string', default: 'requests' },
    'kv-capacity-tokens': { type: 'string' },
    scale: { type: 'string', default: '1' },
    'refit-rows': { type: 'string', default: '100' },
  },
});
const TARGET_MODEL = 'replayed';
const ReportBatchRequest = messageType('observation.v1.ReportBatchRequest');
const ReportResponse = messageType('observation.v1.ReportResponse');
/** Events that are due within this time are reported in one call. */
const TICK_MS = 5;

type Served = Readonly<Record<PredictionTarget, Answer[]>>;

/** Converts the log to that of servers this many times as fast. */
function speedUp(table: ObservationTable, scale: number): void {
  for (const column of [table.atMs, table.endMs, table.ttftMs, table.tpotMs])
    for (let row = 0; row < table.count; row++) column[row]! /= scale;
}

interface Happening {
  readonly dueMs: number;
  readonly row: number;
  readonly kind: 'sent' | 'first token' | 'end';
}

function listHappenings(table: ObservationTable): Happening[] {
  return listRows(table)
    .flatMap((row): Happening[] => {
      const [sentMs, firstTokenMs] = [table.atMs[row]!, table.atMs[row]! + table.ttftMs[row]!];
      return [
        { dueMs: sentMs, row, kind: 'sent' },
        { dueMs: firstTokenMs, row, kind: 'first token' },
        { dueMs: Math.max(firstTokenMs, table.endMs[row]!), row, kind: 'end' },
      ];
    })
    .filter(({ dueMs }) => !Number.isNaN(dueMs))
    .sort((a, b) => a.dueMs - b.dueMs);
}

function describeInput(table: ObservationTable, row: number): Record<string, unknown> {
  const metrics = Object.fromEntries(METRIC_COLUMNS.map((name) => [name, table[name][row]!]));
  for (const name of ['inputTokenLength', 'inflightTokens', 'numRequestWaiting', 'numRequestRunning'] as const)
    metrics[name] = Math.round(table[name][row]!);
  return { ...metrics, podType: table.podTypes[table.podType[row]!]!, serverIp: table.servers[table.server[row]!]! };
}

function toEvent(table: ObservationTable, { row, kind }: Happening): object {
  const requestId = String(row);
  if (kind === 'sent')
    return { dispatched: { requestId, targetModel: TARGET_MODEL, input: describeInput(table, row) } };
  if (kind === 'first token') return { firstToken: { requestId, ttftMillis: table.ttftMs[row]! } };
  const tpotMs = table.tpotMs[row]!;
  const outputTokens = table.outputTokens[row]! > 0 ? table.outputTokens[row]! : 0;
  return { finished: { requestId, outputTokens, ...(tpotMs > 0 && { tpotMillis: tpotMs }) } };
}

interface Predicted {
  readonly outputs: readonly { readonly predictedTtftMillis: number; readonly predictedTpotMillis: number }[];
  readonly metadata: { readonly modelVersion: string };
}

let answeredBy = '';

async function predictRow(client: RawClient, table: ObservationTable, row: number) {
  const request = { targetModel: TARGET_MODEL, inputs: [describeInput(table, row)] };
  const bytes = await client.unary('/prediction.v1.PredictionService/Predict', encodeMessage(PredictRequest, request));
  const { outputs, metadata } = decodeMessage<Predicted>(PredictResponse, bytes);
  if (metadata.modelVersion !== answeredBy) console.error(`Row ${row} is answered by ${metadata.modelVersion}`);
  answeredBy = metadata.modelVersion;
  return { ttft: outputs[0]!.predictedTtftMillis, tpot: outputs[0]!.predictedTpotMillis };
}

async function reportEvents(client: RawClient, events: readonly object[]): Promise<void> {
  const body = encodeMessage(ReportBatchRequest, { events });
  const bytes = await client.unary('/observation.v1.ObservationService/ReportBatch', body);
  const { refused } = decodeMessage<{ refused: number }>(ReportResponse, bytes);
  if (refused > 0) console.error(`${refused} events were refused`);
}

async function replay(table: ObservationTable, client: RawClient): Promise<Served> {
  const served: Served = { ttft: [], tpot: [] };
  const happenings = listHappenings(table);
  const originMs = performance.now() - happenings[0]!.dueMs;
  const calls: Promise<void>[] = [];
  let latestMs = 0;
  const ask = async (row: number): Promise<void> => {
    const predicted = await predictRow(client, table, row);
    for (const target of PREDICTION_TARGETS) {
      const observedMs = observedTimes(table, target)[row]!;
      if (observedMs > 0) served[target].push({ row, observedMs, predictedMs: predicted[target], p90Ms: Number.NaN });
    }
  };
  // Events of one request stay in order: each call of reports waits for the one before.
  let reported = Promise.resolve();
  for (let next = 0; next < happenings.length; ) {
    const nowMs = performance.now() - originMs;
    const waitMs = happenings[next]!.dueMs - nowMs;
    if (waitMs > 0) await sleep(Math.max(TICK_MS, waitMs));
    const untilMs = performance.now() - originMs;
    const due: Happening[] = [];
    while (next < happenings.length && happenings[next]!.dueMs <= untilMs) due.push(happenings[next++]!);
    latestMs = Math.max(latestMs, ...due.map(({ dueMs }) => untilMs - dueMs));
    calls.push(...due.filter(({ kind }) => kind === 'sent').map(({ row }) => ask(row)));
    const events = due.map((happening) => toEvent(table, happening));
    reported = reported.then(() => reportEvents(client, events));
    if (next % 500 < due.length) console.error(`${next} of ${happenings.length} events`);
  }
  await Promise.all([...calls, reported]);
  console.error(`The latest event was sent ${latestMs.toFixed(0)} ms after its time`);
  return served;
}

/** Compares errors on the second half of the log, after the service has learned from the first. */
function printComparison(table: ObservationTable, served: Served): void {
  const judged = evaluate('prequential', table, {
    parameters: DEFAULT_TRAINING,
    onProgress: () => {},
    reporting: PROMPT_REPORTING,
  });
  const inTime = listRows(table);
  const second = new Set(inTime.slice(inTime.length >> 1));
  console.log(
    '| target | rows | served, MAPE % (90 %) | prequential, MAPE % (90 %) | served beside prequential, median % |',
  );
  console.log(`|${'---|'.repeat(5)}`);
  for (const target of PREDICTION_TARGETS) {
    const byRow = new Map(judged[target].map((answer) => [answer.row, answer]));
    const pairs = served[target]
      .filter(({ row }) => second.has(row) && byRow.has(row))
      .sort((a, b) => table.atMs[a.row]! - table.atMs[b.row]!)
      .map((answer) => ({ live: answer, other: byRow.get(answer.row)! }));
    const apart = pairs
      .map(({ live, other }) => Math.abs(Math.log(live.predictedMs / other.predictedMs)))
      .sort((a, b) => a - b);
    const errors = (['live', 'other'] as const).map((which) =>
      formatMean(
        pairs.map(
          (pair) => (100 * Math.abs(pair[which].predictedMs - pair[which].observedMs)) / pair[which].observedMs,
        ),
      ),
    );
    const middle = 100 * Math.expm1(apart[apart.length >> 1] ?? 0);
    console.log(`| ${[target.toUpperCase(), pairs.length, ...errors, middle.toFixed(1)].join(' | ')} |`);
  }
}

function formatMean(values: readonly number[]): string {
  const { mean, low, high } = bootstrapMean(values);
  return `${mean.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)})`;
}

if (flags.input === undefined) throw new Error('--input must name a log of requests');
const { table } = await readTable([flags.input], {
  format: flags.format as Format,
  targetModel: '',
  kvCapacityTokens: flags['kv-capacity-tokens'] === undefined ? undefined : Number(flags['kv-capacity-tokens']),
  stdin: process.stdin,
});
if (table.atMs.subarray(0, table.count).some(Number.isNaN))
  throw new Error('Every request of the log must have a time');
speedUp(table, Number(flags.scale));
const program = await startProgram({ PREDICTION_REFIT_ROWS: flags['refit-rows'], LOG_LEVEL: 'warn' });
const client = connectRaw(program.grpcAddress);
try {
  const served = await replay(table, client);
  printComparison(table, served);
} finally {
  client[Symbol.dispose]();
  await program[Symbol.asyncDispose]();
}
