/** Evaluates how well the observations of files can be predicted; this can take minutes. */
import { Failure } from '../../errors.ts';
import { type Accuracy, measureAccuracy } from '../evaluation/accuracy.ts';
import { measureByLength } from '../evaluation/answer-lengths.ts';
import { evaluate, type Protocol } from '../evaluation/protocols.ts';
import type { Age } from '../evaluation/stale-metrics.ts';
import type { Format } from '../formats/read-observations.ts';
import { type IgnoredField, type Refusals, readTable } from '../formats/read-table.ts';
import { listTableMistakes } from '../formats/time-mistake.ts';
import { countCopies, type ObservationTable } from '../schema/observation-table.ts';
import { DEFAULT_TRAINING } from '../training/train-model.ts';

export interface EvaluateFileOrder {
  readonly path: string;
  readonly format: Format | undefined;
  readonly protocol: Protocol;
  /** Limits the rows to those of this target model; undefined takes all. */
  readonly model: string | undefined;
  /** The tokens that the KV cache of one server holds; logs of requests and benchmarks do not have it. */
  readonly kvCapacityTokens: number | undefined;
  /** The server that a benchmark measured. */
  readonly server: string | undefined;
  readonly holdOut: readonly string[] | undefined;
  readonly age: Age | undefined;
  /** Names the file in messages, and the run of a benchmark; its path when undefined. */
  readonly name?: string | undefined;
  /** More rows are refused: a few hundred bytes of Parquet can have ten million rows, and all are in memory at once. */
  readonly maxRows?: number | undefined;
}

/** Throws `invalid` for an option that the protocol does not use. */
export function checkProtocolOptions({
  protocol,
  holdOut,
  age,
}: Pick<EvaluateFileOrder, 'protocol'> & Partial<EvaluateFileOrder>): void {
  if (holdOut !== undefined && protocol !== 'leave-run-out')
    throw new Failure('invalid', `Cannot hold runs out with the protocol ${protocol}: it must be leave-run-out`);
  if (age !== undefined && protocol !== 'stale-metrics')
    throw new Failure('invalid', `Cannot use an age with the protocol ${protocol}: it must be stale-metrics`);
}

export interface Evaluation {
  readonly protocol: Protocol;
  readonly ttft: AccuracyJson;
  readonly tpot: AccuracyJson;
  /** The errors by ranges of lengths, such as `2-3`; absent if no length is known. */
  readonly tpot_by_output_tokens?: Readonly<Record<string, AccuracyJson>> | undefined;
}

/** The evaluation of a file, and warnings about its rows. */
export interface FileEvaluation extends Evaluation {
  /** Rows that could not be used, most frequent reason first; absent without such rows. */
  readonly left_out?: LeftOutRows[] | undefined;
  /** The number of rows that are copies of another one; absent without copies. */
  readonly copies?: number | undefined;
  /** Fields that are not used; absent without such fields. */
  readonly ignored?: IgnoredField[] | undefined;
  /** Likely mistakes in the used rows; absent without any. */
  readonly remarks?: string[] | undefined;
}

export interface LeftOutRows {
  readonly rows: number;
  readonly reason: string;
  /** The line of the first of them, or its position in a benchmark's file. */
  readonly first_at: string;
}

export async function evaluateFile(order: EvaluateFileOrder): Promise<FileEvaluation> {
  const { path, format, protocol, model, kvCapacityTokens, server, holdOut, age, name, maxRows } = order;
  checkProtocolOptions(order);
  const { table, refusals, ignoredFields } = await readTable([path], {
    format,
    kvCapacityTokens,
    server,
    targetModel: model ?? '',
    stdin: process.stdin,
    name,
    maxRows,
    check: ({ targetModel }) =>
      model === undefined || targetModel === model ? undefined : `target_model is "${targetModel}"`,
  });
  if (table.count === 0)
    throw new Failure('invalid', `Cannot evaluate: no row is usable: ${refusals[0]?.reason ?? 'the file is empty'}`);
  const answers = evaluate(protocol, table, { parameters: DEFAULT_TRAINING, onProgress: () => {}, holdOut, age });
  const copies = countCopies(table);
  const remarks = [...listTableMistakes(table), findMixedModels(table) ?? []].flat();
  return {
    ...measureAnswers(protocol, table, answers),
    ...(refusals.length > 0 && { left_out: refusals.map((refusal) => describeLeftOut(refusal, path)) }),
    ...(copies > 0 && { copies }),
    ...(ignoredFields.length > 0 && { ignored: [...ignoredFields] }),
    ...(remarks.length > 0 && { remarks }),
  };
}

export function findMixedModels({ models }: ObservationTable): string | undefined {
  return models.length > 1 ? `All of ${models.length} target models are judged as one; name one of them` : undefined;
}

/** Leaves out the path, which is that of a temporary copy. */
function describeLeftOut({ rows, reason, firstAt }: Refusals, path: string): LeftOutRows {
  return { rows, reason, first_at: firstAt.slice(`${path}:`.length) };
}

/** Throws `invalid` if the protocol left no rows to test. */
export function measureAnswers(
  protocol: Protocol,
  table: ObservationTable,
  answers: ReturnType<typeof evaluate>,
): Evaluation {
  const ttft = measureAccuracy(answers.ttft);
  const tpot = measureAccuracy(answers.tpot);
  if (ttft === undefined && tpot === undefined)
    throw new Failure('invalid', `Cannot evaluate: the protocol "${protocol}" left no row to judge`);
  const lengths = measureByLength(table, answers.tpot);
  return {
    protocol,
    ttft: toAccuracyJson(ttft),
    tpot: toAccuracyJson(tpot),
    ...(lengths.length > 0 && {
      tpot_by_output_tokens: Object.fromEntries(
        lengths.map(({ tokens, accuracy }) => [tokens, toAccuracyJson(accuracy)]),
      ),
    }),
  };
}

export type AccuracyJson = ReturnType<typeof toAccuracyJson>;

/** All numbers except `rows` are in percent. The names are a stable interface for scripts. */
export function toAccuracyJson(accuracy: Accuracy | undefined) {
  return {
    rows: accuracy?.rows ?? 0,
    mape: accuracy?.mape ?? null,
    mdape: accuracy?.mdape ?? null,
    wape: accuracy?.wape ?? null,
    bias: accuracy?.bias ?? null,
    p50_coverage: accuracy?.p50Coverage ?? null,
    p90_coverage: accuracy?.p90Coverage ?? null,
    p90_pinball: accuracy?.p90Pinball ?? null,
  };
}
