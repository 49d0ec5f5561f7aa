/** Predicts the rows of a cell with each predictor: ours, our physics alone, and the peers. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type * as Accuracy from '../../src/prediction/evaluation/accuracy.ts';
import type { Fold } from '../../src/prediction/evaluation/folds.ts';
import type * as Protocols from '../../src/prediction/evaluation/protocols.ts';
import type * as ReadTable from '../../src/prediction/formats/read-table.ts';
import { evaluatePhysics, fitPhysics } from '../../src/prediction/physics/physics.ts';
import {
  type ObservationTable,
  observedTimes,
  type PredictionTarget,
  selectRows,
} from '../../src/prediction/schema/observation-table.ts';
import type * as TrainModel from '../../src/prediction/training/train-model.ts';
import type { Cell } from './cells.ts';

/** A prediction and the observed time; a predictor without quantiles has no p90. */
export type TestAnswer = Omit<Accuracy.Answer, 'p90Ms' | 'row'> & { readonly p90Ms?: number | undefined };

/** The parts of a checkout of this program that predict. */
export interface Program {
  readonly evaluate: typeof Protocols.evaluate;
  readonly readTable: typeof ReadTable.readTable;
  readonly parameters: typeof TrainModel.DEFAULT_TRAINING;
}

export async function loadProgram(folder: URL): Promise<Program> {
  const load = async <T>(path: string) => (await import(new URL(`src/prediction/${path}`, folder).href)) as T;
  const { evaluate } = await load<typeof Protocols>('evaluation/protocols.ts');
  const { readTable } = await load<typeof ReadTable>('formats/read-table.ts');
  const { DEFAULT_TRAINING } = await load<typeof TrainModel>('training/train-model.ts');
  return { evaluate, readTable, parameters: DEFAULT_TRAINING };
}

export async function readLog({ readTable }: Program, { log }: Cell): Promise<ObservationTable> {
  const { paths, format, kvCapacityTokens } = log;
  const { table } = await readTable(paths, { format, targetModel: '', kvCapacityTokens, stdin: process.stdin });
  return table;
}

export async function answerByProgram(program: Program, cell: Cell): Promise<Accuracy.Answers> {
  const { parameters } = program;
  const table = await readLog(program, cell);
  return program.evaluate(cell.protocol, table, { parameters, onProgress: () => {}, reporting: cell.reporting });
}

export function answerByPhysics(
  table: ObservationTable,
  target: PredictionTarget,
  parts: readonly Fold[],
): TestAnswer[] {
  const observed = observedTimes(table, target);
  return parts.flatMap(({ train, test }) => {
    const times = Float64Array.from(train, (row) => observed[row]!);
    const physics = fitPhysics(target, selectRows(table, train), times);
    const predicted = new Float64Array(test.length);
    evaluatePhysics(physics, selectRows(table, test), test.length, predicted);
    return test.map((row, i) => ({ predictedMs: predicted[i]!, observedMs: observed[row]! }));
  });
}

export interface PeerAnswers {
  readonly name: string;
  /** Undefined if the library of the predictor is not installed. */
  readonly answers: readonly TestAnswer[] | undefined;
}

interface PeerLine {
  readonly name: string;
  readonly missing?: boolean;
  /** One list for each part. */
  readonly predictions?: readonly (readonly number[])[];
  readonly p90?: readonly (readonly number[])[];
}

interface PeerTask {
  readonly table: ObservationTable;
  readonly target: PredictionTarget;
  readonly parts: readonly Fold[];
  readonly python: string;
  readonly only: readonly string[];
  /** Whether to train quantile models too, which double the cost of each refit. */
  readonly quantiles: boolean;
}

export function answerByPeers({ table, target, parts, python, only, quantiles }: PeerTask): PeerAnswers[] {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  const times = observedTimes(table, target);
  const observed = rows.map((row) => (times[row]! > 0 ? times[row]! : 0));
  const features = rows.map((row) => describeRow(table, target, row));
  const script = fileURLToPath(new URL('./peers.py', import.meta.url));
  const input = JSON.stringify({ features, observed, schedule: parts, only, quantiles });
  const { stdout, stderr, status } = spawnSync(python, [script], { input, maxBuffer: 1 << 28, encoding: 'utf8' });
  if (status !== 0) throw new Error(`Cannot run the peers: ${stderr}`);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line): PeerAnswers => {
    const { name, missing, predictions = [], p90 } = JSON.parse(line) as PeerLine;
    const answers = parts.flatMap(({ test }, part) =>
      test.map((row, i) => ({
        predictedMs: predictions[part]?.[i] ?? Number.NaN,
        p90Ms: p90?.[part]?.[i],
        observedMs: times[row]!,
      })),
    );
    return { name, answers: missing === true ? undefined : answers };
  });
}

/** As llm-d describes a request: TPOT without the prefix cache, which its rows do not have. */
function describeRow(table: ObservationTable, target: PredictionTarget, row: number): number[] {
  const load = [table.kvCacheUsage, table.inputTokenLength, table.numRequestWaiting, table.numRequestRunning];
  const values = [...load, table.inflightTokens].map((column) => column[row]!);
  const prefix = table.prefixCacheScore[row]!;
  return target === 'ttft' ? [...values, prefix, (1 - prefix) * table.inputTokenLength[row]!] : values;
}
