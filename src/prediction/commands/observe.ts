/** Runs `trivet observe`: stores observations of files as samples. */
import { statSync } from 'node:fs';
import { Command } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { print, printJson, remark } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import type { ReadRow } from '../formats/parse-record.ts';
import { describePlace, type Format, readObservations } from '../formats/read-observations.ts';
import { createFieldCounter, createRefusalCounter } from '../formats/read-table.ts';
import { isTooFarAhead, MAX_NAME_BYTES } from '../observations/event-draft.ts';
import { checkModelName } from '../schema/model-name.ts';
import type { Observation } from '../schema/observation.ts';
import { createRecordings, createTimeline, type RecordingDates, type Recordings } from './recording-times.ts';
import {
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  remarkAll,
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
/** Standard input or a pipe may come from a program that runs for days and pauses for hours. */
const STREAM: IntakePace = { checkedRows: 1000, maxWaitMs: 1000 };

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
  const failing = new AbortController();
  const pace = options.input.some(isStream) ? STREAM : FILES;
  using intake = createSampleIntake(opened, { ...pace, onFailure: (error) => failing.abort(error) });
  const refused = createRefusalCounter();
  const ignored = createFieldCounter();
  const reading = { ...options, onIgnoredField: ignored.count, signal: failing.signal };
  try {
    for await (const { path, row } of readDatedRows(reading, opened.world))
      if ('refusal' in row) refused.count(row.refusal, describePlace(path, row));
      else await intake.add(row.observation);
  } catch (error) {
    // A failure to store rows aborts the read that waits for the stream.
    throw failing.signal.aborted ? failing.signal.reason : error;
  }
  const accepted = await intake.finish();
  const refusals = refused.list();
  warnOfIgnored(ignored.list());
  if (accepted === 0 && refusals.length > 0)
    throw new Failure('invalid', `Cannot observe: no row is usable\n${formatRefusals(refusals)}`);
  if (options.json) return printJson({ accepted, refusals });
  print(`Took ${accepted} observations`);
  if (refusals.length > 0) print(`\nRows left out\n${formatRefusals(refusals)}`);
}

interface ReadingOptions extends ObserveOptions {
  readonly onIgnoredField: (name: string) => void;
  readonly signal: AbortSignal;
}

interface FileRow {
  readonly path: string;
  readonly row: ReadRow;
}

/** Reads files twice, since the last row of a recording decides how all its rows are dated. A stream can be read only once. */
async function* readDatedRows(options: ReadingOptions, world: World): AsyncGenerator<FileRow> {
  const files = createRecordings();
  for (const path of options.input.filter((each) => !isStream(each)))
    for await (const row of readReportable(path, { ...options, onIgnoredField: () => {} }, world))
      files.note(path, row);
  const timeline = createTimeline();
  const plan = (recordings: Recordings): RecordingDates => {
    const planned = recordings.plan(world.nowMs(), timeline);
    remarkAll(planned.remarks);
    return planned;
  };
  const dates = plan(files);
  for (const path of options.input) {
    const rows = readReportable(path, options, world);
    if (isStream(path)) for await (const row of dateStream({ path, rows, plan }, world)) yield { path, row };
    else for await (const row of rows) yield { path, row: dates.date(path, row) };
  }
}

function isStream(path: string): boolean {
  return path === '-' || statSync(path, { throwIfNoEntry: false })?.isFile() === false;
}

/** Reads rows, and refuses those that would be refused as reports. */
async function* readReportable(path: string, options: ReadingOptions, world: World): AsyncGenerator<ReadRow> {
  const { model: targetModel = '', format, ...reading } = options;
  for await (const row of readObservations(path, { ...reading, format, targetModel, stdin: process.stdin })) {
    const { line, place } = row;
    const refusal = 'observation' in row ? findUnreportable(row.observation, world.nowMs()) : undefined;
    yield refusal === undefined ? row : { line, ...(place === undefined ? {} : { place }), refusal };
  }
}

interface StreamedRows {
  readonly path: string;
  readonly rows: AsyncIterable<ReadRow>;
  readonly plan: (recordings: Recordings) => RecordingDates;
}

/** Holds runs until the end of the stream, and dates them before those of files. Passes other rows on, dated now at the latest. */
async function* dateStream({ path, rows, plan }: StreamedRows, world: World): AsyncGenerator<ReadRow> {
  const runs = createRecordings();
  const held: ReadRow[] = [];
  let ahead = 0;
  for await (const row of rows)
    if ('observation' in row && row.observation.run !== undefined) {
      runs.note(path, row);
      held.push(row);
    } else {
      if ('observation' in row && (row.observation.atMs ?? 0) > world.nowMs()) ahead++;
      yield row;
    }
  const dates = plan(runs);
  for (const row of held) yield dates.date(path, row);
  if (ahead > 0)
    remark(`Rows of a stream that are dated ahead of the clock here: ${ahead}. Each is dated at its arrival`);
}

/** Returns why a report with this observation would be refused: the same rules hold for rows of files. */
function findUnreportable({ targetModel, input, atMs }: Observation, nowMs: number): string | undefined {
  if (targetModel === '') return 'target_model must be present, or given with --model';
  const texts = { target_model: targetModel, pod_type: input.podType, server_ip: input.serverIp };
  for (const [name, text] of Object.entries(texts))
    if (Buffer.byteLength(text) > MAX_NAME_BYTES) return `${name} must have at most ${MAX_NAME_BYTES} bytes`;
  return isTooFarAhead(atMs ?? nowMs, nowMs) ? 'at must not be more than a day ahead' : undefined;
}
