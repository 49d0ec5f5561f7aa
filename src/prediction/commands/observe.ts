/** Runs `trivet observe`: stores observations of files as samples. */
import { Command } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { print, printJson } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { describePlace, type Format, readObservations } from '../formats/read-observations.ts';
import { countRefusal, type Refusals } from '../formats/read-table.ts';
import { isTooFarAhead, MAX_NAME_BYTES } from '../observations/event-draft.ts';
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
import { createSampleIntake, type IntakePace } from './sample-intake.ts';

interface ObserveOptions {
  readonly input: readonly string[];
  readonly model?: string;
  readonly format?: Format;
  readonly kvCapacityTokens?: number;
  readonly server?: string;
  readonly json?: boolean;
}

const FILES: IntakePace = { checkedRows: 20_000 };
/** Standard input may be a program that goes on for days, and says nothing for hours. */
const STREAM: IntakePace = {
  checkedRows: 1000,
  maxWaitMs: 1000,
  // The read that waits for standard input throws the error.
  onFailure: (error) => void process.stdin.on('error', () => {}).destroy(error),
};

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
  using intake = createSampleIntake(opened, options.input.includes('-') ? STREAM : FILES);
  const refused = new Map<string, Refusals>();
  const ignored = createFieldCounter();
  for (const path of options.input)
    for await (const row of readObservations(path, {
      ...readOptions(options),
      onIgnoredField: ignored.count,
      stdin: process.stdin,
    })) {
      const refusal = 'refusal' in row ? row.refusal : findUnreportable(row.observation, opened.world.nowMs());
      if (refusal !== undefined) countRefusal(refused, refusal, describePlace(path, row));
      else if ('observation' in row) await intake.add(row.observation);
    }
  const accepted = await intake.finish();
  const refusals = [...refused.values()].sort((a, b) => b.rows - a.rows);
  warnOfIgnored(ignored.list());
  if (accepted === 0 && refusals.length > 0)
    throw new Failure('invalid', `Cannot observe: no row is usable\n${formatRefusals(refusals)}`);
  if (options.json) return printJson({ accepted, refusals });
  print(`Took ${accepted} observations`);
  if (refusals.length > 0) print(`\nRows left out\n${formatRefusals(refusals)}`);
}

function readOptions({ format, model, kvCapacityTokens, server }: ObserveOptions) {
  return { format, kvCapacityTokens, server, targetModel: model ?? '' };
}

/** Returns why a report with this observation would be refused: rows of files follow the same rules. */
function findUnreportable({ targetModel, input, atMs }: Observation, nowMs: number): string | undefined {
  if (targetModel === '') return 'target_model must be present, or given with --model';
  const texts = { target_model: targetModel, pod_type: input.podType, server_ip: input.serverIp };
  for (const [name, text] of Object.entries(texts))
    if (Buffer.byteLength(text) > MAX_NAME_BYTES) return `${name} must have at most ${MAX_NAME_BYTES} bytes`;
  return isTooFarAhead(atMs ?? nowMs, nowMs) ? 'at must not be more than a day ahead' : undefined;
}
