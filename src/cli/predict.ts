import { Command, Option } from 'commander';
import { Failure } from '../errors.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../prediction/columns.ts';
import { explainPrediction, type PredictionExplanation } from '../prediction/explain.ts';
import { FORMATS, type Format, openRecords } from '../prediction/formats/read-observations.ts';
import { detectFieldNames, parseInputRecord, type RawRecord } from '../prediction/formats/record.ts';
import { createLiveModel } from '../prediction/live-model.ts';
import { createPriorModel, findTargetModel, type LatencyModel } from '../prediction/model.ts';
import { decodeModel } from '../prediction/model-codec.ts';
import { listPromotedModels, readModelFile } from '../prediction/model-store.ts';
import { TARGETS, type Target } from '../prediction/observation-table.ts';
import { levelOf } from '../prediction/server-levels.ts';
import { openCliStore } from './open-cli-store.ts';
import { formatTable, print, printJson, remark } from './output.ts';

interface PredictOptions {
  readonly model: string;
  readonly input: string;
  readonly format?: Format;
  readonly json?: boolean;
  readonly explain?: boolean;
}

export function createPredictCommand(): Command {
  return new Command('predict')
    .description('Predict TTFT and TPOT for candidates in a file, with the model that is served')
    .requiredOption('--model <name>', 'the target model')
    .requiredOption('--input <file>', 'candidates: one JSON object a line, CSV or Parquet; "-" is standard input')
    .addOption(new Option('--format <name>', 'what the input is; detected when left out').choices(FORMATS))
    .option('--json', 'print one JSON object a line')
    .option('--explain', 'say what each prediction is made of')
    .action(predict);
}

async function predict(options: PredictOptions): Promise<void> {
  const model = await loadModel(options.model);
  const served = createLiveModel(model);
  const columns = createPredictColumns(1);
  const predicted = { ttftMs: new Float64Array(1), tpotMs: new Float64Array(1) };
  const rows: (string | number)[][] = [];
  let omitted = 0;
  for await (const { line, record, problem } of await openRecords(options.input, {
    format: options.format,
    stdin: process.stdin,
  })) {
    const parsed = record === undefined ? { refusal: problem ?? 'not a record' } : readCandidate(record);
    if ('refusal' in parsed) {
      omitted++;
      remark(`Line ${line} is omitted: ${parsed.refusal}`);
      continue;
    }
    const { input } = parsed;
    columns.count = 1;
    columns.podTypes = [input.podType];
    for (const name of METRIC_COLUMNS) columns[name][0] = input[name];
    columns.source = Buffer.from(input.serverIp);
    columns.serverIpLength[0] = columns.source.length;
    // One that the model has not seen then has the level of its kind.
    served.state.servers.ensure(columns.source);
    served.predict(columns, predicted);
    const answer = { line, serverIp: input.serverIp, ttft: predicted.ttftMs[0]!, tpot: predicted.tpotMs[0]! };
    if (options.json)
      printJson({
        line,
        input_id: record?.input_id ?? 0,
        server_ip: answer.serverIp,
        predicted_ttft_millis: answer.ttft,
        predicted_tpot_millis: answer.tpot,
        model_version: model.id,
        ...(options.explain ? { explanation: explain(model, columns, input.serverIp) } : {}),
      });
    else if (options.explain) print(formatExplanation(answer, explain(model, columns, input.serverIp)));
    else rows.push([line, answer.serverIp, Number(answer.ttft.toFixed(2)), Number(answer.tpot.toFixed(3))]);
  }
  if (!options.json && !options.explain) print(formatTable(['line', 'server', 'TTFT ms', 'TPOT ms'], rows));
  remark(`${model.id}${omitted > 0 ? `, ${omitted} omitted` : ''}`);
}

type Explanations = Readonly<Record<Target, PredictionExplanation>>;

function explain(model: LatencyModel, columns: PredictColumns, server: string): Explanations {
  const podType = columns.podTypes[0] ?? '';
  const [ttft, tpot] = TARGETS.map((target) => {
    const learned = findTargetModel(model, podType, target);
    return explainPrediction(learned, columns, levelOf(learned.levels, server, podType));
  });
  return { ttft: ttft!, tpot: tpot! };
}

function formatExplanation(
  answer: { readonly line: number; readonly serverIp: string; readonly ttft: number; readonly tpot: number },
  explanations: Explanations,
): string {
  const texts = TARGETS.map((target) => {
    return `  ${target.toUpperCase()} ${answer[target].toFixed(2)} ms = ${formatParts(explanations[target])}`;
  });
  return `Line ${answer.line} ${answer.serverIp}\n${texts.join('\n')}`;
}

function formatParts({ physics, treeFactors, serverFactor, treeMilliseconds = {} }: PredictionExplanation): string {
  const terms = Object.entries(physics).map(([name, ms]) => `${ms.toFixed(1)} ${name}`);
  const factors = Object.entries(treeFactors).map(([name, factor]) => `${factor.toFixed(2)} ${name}`);
  const server = serverFactor === 1 ? [] : [`${serverFactor.toFixed(2)} server`];
  const product = [...(terms.length > 0 ? [`(${terms.join(' + ')})`] : []), ...factors, ...server].join(' × ');
  const added = Object.entries(treeMilliseconds).map(([name, ms]) => `${ms.toFixed(2)} ${name}`);
  return [...(product === '' ? [] : [product]), ...added].join(' + ');
}

function readCandidate(record: RawRecord) {
  return parseInputRecord(record, detectFieldNames(record));
}

async function loadModel(name: string): Promise<LatencyModel> {
  await using opened = await openCliStore();
  const promoted = (await listPromotedModels(opened.store)).find((model) => model.name === name);
  if (promoted !== undefined) return decodeModel(await readModelFile(opened.store, name, promoted.version));
  if (opened.config.prediction.unknownModel === 'reject')
    throw new Failure('not_found', `Cannot predict: nothing was learned yet about "${name}"`);
  return createPriorModel();
}
