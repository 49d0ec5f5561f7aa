/** Runs `trivet observe`: stores observations of files as samples. */
import { Command } from 'commander';
import { type CliStore, openCliStore } from '../../command-line/open-cli-store.ts';
import { createProgress, print, printJson } from '../../command-line/output.ts';
import { Failure } from '../../errors.ts';
import { describePlace, type Format, readObservations } from '../formats/read-observations.ts';
import { countRefusal, type Refusals } from '../formats/read-table.ts';
import { isTooFarAhead, MAX_NAME_BYTES } from '../observations/event-draft.ts';
import { insertSampleStatement } from '../observations/sample-store.ts';
import { checkModelName } from '../schema/model-name.ts';
import type { Observation } from '../schema/observation.ts';
import { appendObservation, createObservationTable } from '../schema/observation-table.ts';
import {
  createFieldCounter,
  createFormatOption,
  createKvCapacityOption,
  createServerOption,
  formatRefusals,
  warnOfIgnored,
  warnOfMistakes,
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

interface IntakePace {
  /** Mistakes are looked for in this many rows, before any of them is stored. */
  readonly checkedRows: number;
  /** Rows are stored after this long, checked or not. */
  readonly maxWaitMs?: number;
}

const FILES: IntakePace = { checkedRows: 20_000 };
/** Standard input may be a program that goes on for days. */
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
  const intake = createIntake(opened, options.input.includes('-') ? STREAM : FILES);
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

/** Checks the first rows together, and stores all. */
function createIntake(opened: CliStore, { checkedRows, maxWaitMs }: IntakePace) {
  const showProgress = createProgress(() => opened.world.monotonicMs());
  let unchecked: Observation[] | undefined = [];
  let waiting: Observation[] = [];
  let timer: NodeJS.Timeout | undefined;
  let stored = Promise.resolve();
  let accepted = 0;

  function check(): void {
    if (unchecked !== undefined) warnOfRows(unchecked);
    unchecked = undefined;
  }

  async function save(rows: readonly Observation[]): Promise<void> {
    for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
      const part = rows.slice(from, from + ROWS_AT_ONCE);
      await saveAll(opened, part);
      accepted += part.length;
      showProgress(`Taken: ${accepted} rows`);
    }
  }

  /** Stores what waits, after what is being stored. */
  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const rows = waiting;
    waiting = [];
    stored = stored.then(() => save(rows));
    // The next row or the end throws the error of a flush that the timer began.
    stored.catch(() => {});
    return stored;
  }

  return {
    async add(observation: Observation): Promise<void> {
      await stored;
      waiting.push(observation);
      if (unchecked !== undefined && unchecked.push(observation) >= checkedRows) check();
      if (unchecked === undefined && waiting.length >= ROWS_AT_ONCE) await flush();
      else if (maxWaitMs !== undefined) timer ??= setTimeout(() => void flush(), maxWaitMs).unref();
    },
    /** Returns the number of rows that were stored. */
    async finish(): Promise<number> {
      check();
      await flush();
      return accepted;
    },
  };
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

function warnOfRows(observations: readonly Observation[]): void {
  const table = createObservationTable(Math.max(1, observations.length));
  for (const observation of observations) appendObservation(table, observation);
  warnOfMistakes(table);
}

async function saveAll({ store, world }: CliStore, observations: readonly Observation[]): Promise<void> {
  const nowMs = world.nowMs();
  const ids = await store.makeIds(observations.length);
  await store.writeAll(
    observations.map((observation, index) =>
      // A row that is dated ahead counts from now, like one of a report.
      insertSampleStatement({
        id: ids[index]!,
        observation: { ...observation, atMs: Math.min(observation.atMs ?? nowMs, nowMs) },
      }),
    ),
  );
}
