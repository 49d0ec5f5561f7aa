/** Runs `trivet predict`: predicts the rows of a file with the served version. */
import { Command } from 'commander';
import { type Cell, formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import {
  detectFieldNames,
  hasInputFields,
  KNOWN_FIELDS,
  listIgnoredFields,
  type RawRecord,
  toOwnNames,
} from '../formats/field-names.ts';
import { parseInputRecord } from '../formats/parse-record.ts';
import { openRecords, TABLE_FORMATS, type TableFormat } from '../formats/read-observations.ts';
import { createFieldCounter } from '../formats/read-table.ts';
import { createInputColumns, explainInput, fillInput } from '../model/explain-input.ts';
import { createPriorModel, type LatencyModel } from '../model/model.ts';
import { createLiveModel } from '../online/live-model.ts';
import type { PredictColumns } from '../schema/columns.ts';
import { checkModelName } from '../schema/model-name.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { type ExplainedAnswer, formatExplanation } from './explanation-text.ts';
import { createFormatOption, warnOfIgnored } from './row-input.ts';
import { readServedModel } from './served-model.ts';

interface PredictOptions {
  readonly model: string;
  readonly input: string;
  readonly format?: TableFormat;
  readonly json?: boolean;
  readonly explain?: boolean;
}

export function createPredictCommand(): Command {
  return new Command('predict')
    .description('Predict TTFT and TPOT for candidates in a file, with the model that is served')
    .requiredOption('--model <name>', 'the target model')
    .requiredOption('--input <file>', 'candidates: one JSON object a line, CSV or Parquet; "-" is standard input')
    .addOption(createFormatOption(TABLE_FORMATS))
    .option('--json', 'print one JSON object a line')
    .option('--explain', 'show the terms and factors of each prediction')
    .action(predict);
}

async function predict(options: PredictOptions): Promise<void> {
  checkModelName(options.model);
  const model = await loadModel(options.model);
  const ask = createAsker(model);
  const ignored = createFieldCounter();
  const table: Cell[][] = [];
  let answered = 0;
  let omitted = 0;
  for await (const { line, record, problem } of await openRecords(options.input, {
    format: options.format,
    stdin: process.stdin,
  })) {
    const candidate = record === undefined ? { refusal: problem ?? 'not a record' } : readCandidate(record);
    for (const name of candidate.ignored ?? []) ignored.count(name);
    if ('refusal' in candidate) {
      if (++omitted <= NAMED_OMISSIONS) remark(`Line ${line} is omitted: ${candidate.refusal}`);
      continue;
    }
    answered++;
    const answer = ask(line, candidate.input);
    if (options.json) printJson(toJson(answer, candidate.inputId, model, options.explain));
    else if (options.explain) print(formatExplanation(answer, explainInput(model, answer.columns, answer.serverIp)));
    else table.push([line, answer.serverIp, Number(answer.ttft.toFixed(2)), Number(answer.tpot.toFixed(3))]);
  }
  warnOfIgnored(ignored.list());
  if (omitted > 0 && answered === 0) throw new Failure('invalid', `Cannot predict: all ${omitted} rows are omitted`);
  if (answered === 0) return remark('The input is empty');
  if (table.length > 0) print(formatTable(['line', 'server', 'TTFT ms', 'TPOT ms'], table));
  remark(`Answered by ${model.id}${omitted > 0 ? `, ${omitted} omitted` : ''}`);
}

/** At most this many omitted rows are named, since a file of another kind has one on every line. */
const NAMED_OMISSIONS = 10;

interface Answer extends ExplainedAnswer {
  readonly columns: PredictColumns;
}

/** The columns of an answer are valid until the next one. */
function createAsker(model: LatencyModel): (line: number, input: ObservedInput) => Answer {
  const served = createLiveModel(model);
  const columns = createInputColumns();
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  return (line, input) => {
    fillInput(columns, input);
    // A server that the model has not seen gets the offset of its pod type.
    served.servers.ensure(columns.source);
    served.predict(columns, predicted);
    return { line, serverIp: input.serverIp, ttft: predicted.ttftMs[0]!, tpot: predicted.tpotMs[0]!, columns };
  };
}

function toJson(answer: Answer, inputId: unknown, model: LatencyModel, withExplanation: boolean | undefined): object {
  return {
    line: answer.line,
    input_id: inputId,
    server_ip: answer.serverIp,
    predicted_ttft_millis: answer.ttft,
    predicted_tpot_millis: answer.tpot,
    model_version: model.id,
    ...(withExplanation ? { explanation: explainInput(model, answer.columns, answer.serverIp) } : {}),
  };
}

type Candidate = { readonly ignored?: readonly string[] } & (
  | { readonly input: ObservedInput; readonly inputId: unknown }
  | { readonly refusal: string }
);

function readCandidate(raw: RawRecord): Candidate {
  const record = toOwnNames(raw);
  const ignored = listIgnoredFields(record);
  if (ignored.length > 0 && !hasInputFields(record))
    return { ignored, refusal: `none of its fields is known, which are ${KNOWN_FIELDS.join(', ')}` };
  return { ignored, inputId: record.input_id ?? 0, ...parseInputRecord(record, detectFieldNames(record)) };
}

async function loadModel(name: string): Promise<LatencyModel> {
  const { model, unknownModel } = await readServedModel(name);
  if (model !== undefined) return model;
  if (unknownModel === 'reject')
    throw new Failure('not_found', `Cannot predict: nothing was learned yet about "${name}"`);
  remark(`Nothing was learned yet about "${name}": the prior answers`);
  return createPriorModel();
}
