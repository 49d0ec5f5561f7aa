import { Command } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { createProgress, print, printJson } from '../../command-line/output.ts';
import { describePlace, type Format, readObservations } from '../formats/read-observations.ts';
import { countRefusal, type Refusals } from '../formats/read-table.ts';
import { insertSampleStatement } from '../observations/sample-store.ts';
import { checkModelName } from '../schema/model-name.ts';
import type { Observation } from '../schema/observation.ts';
import {
  createFieldCounter,
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  warnOfIgnored,
} from './row-input.ts';

interface ObserveOptions {
  readonly input: readonly string[];
  readonly model?: string;
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
  readonly json?: boolean;
}

const ROWS_AT_ONCE = 500;

export function createObserveCommand(): Command {
  return new Command('observe')
    .description('Add observations from files to what the service learns from; a running one learns from them soon')
    .requiredOption('--input <file...>', 'observations, as for model train; "-" is standard input')
    .option('--model <name>', 'the target model of rows that name none')
    .addOption(createFormatOption())
    .addOption(createKvCapacityOption())
    .addOption(createServerOption())
    .option('--json', 'print the summary as JSON')
    .action(observe);
}

async function observe(options: ObserveOptions): Promise<void> {
  if (options.model !== undefined) checkModelName(options.model);
  await using opened = await openCliStore({ ifAbsent: 'create' });
  const showProgress = createProgress(() => opened.world.monotonicMs());
  const refused = new Map<string, Refusals>();
  const ignored = createFieldCounter();
  let accepted = 0;
  let waiting: Observation[] = [];
  const flush = async () => {
    if (waiting.length === 0) return;
    await saveAll(opened, waiting);
    accepted += waiting.length;
    waiting = [];
    showProgress(`Taken: ${accepted} rows`);
  };
  for (const path of options.input)
    for await (const row of readObservations(path, {
      ...readOptions(options),
      onIgnoredField: ignored.count,
      stdin: process.stdin,
    })) {
      const refusal = 'refusal' in row ? row.refusal : findMissingModel(row.observation);
      if (refusal !== undefined) countRefusal(refused, refusal, describePlace(path, row));
      else if ('observation' in row && waiting.push(row.observation) >= ROWS_AT_ONCE) await flush();
    }
  await flush();
  const refusals = [...refused.values()].sort((a, b) => b.rows - a.rows);
  warnOfIgnored(ignored.list());
  if (options.json) return printJson({ accepted, refusals });
  print(`Took ${accepted} observations`);
  if (refusals.length > 0) print(`\nRows left out\n${formatRefusals(refusals)}`);
}

function readOptions({ format, model, kvCapacityTokens, server }: ObserveOptions) {
  return { format, kvCapacityTokens, server, targetModel: model ?? '' };
}

function findMissingModel({ targetModel }: Observation): string | undefined {
  return targetModel === '' ? 'target_model must be present, or given with --model' : undefined;
}

async function saveAll({ store, world }: CliStore, observations: readonly Observation[]): Promise<void> {
  const nowMs = world.nowMs();
  const ids = await store.makeIds(observations.length);
  await store.writeAll(
    observations.map((observation, index) =>
      insertSampleStatement({ id: ids[index]!, observation: { ...observation, atMs: observation.atMs ?? nowMs } }),
    ),
  );
}
