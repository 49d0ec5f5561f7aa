/** Runs `trivet model accuracy`: prints the live accuracy of a model over time. */
import type { Command } from 'commander';
import { addServiceOptions } from '../../command-line/open-operator.ts';
import { formatTable, print, printJson, remark } from '../../command-line/output.ts';
import { PAST_TIME_EXAMPLES, type PastTime, parsePastTime } from '../../command-line/time-option.ts';
import { readAccuracy } from '../administration/accuracy-operations.ts';
import { formatModelId } from '../schema/model-name.ts';
import type { OpenModels, OutputOptions } from './open-models.ts';

export function addAccuracyCommand(model: Command, open: OpenModels): void {
  addServiceOptions(model.command('accuracy'))
    .description('Show the accuracy of a model against reported times, over time')
    .argument('<name>', 'the target model')
    .option('--since <time>', `from this time on: ${PAST_TIME_EXAMPLES}; 12h unless given`, parsePastTime)
    .option('--server <ip>', 'only this server, instead of all pod types')
    .option('--json', 'print JSON')
    .action(showAccuracy.bind(undefined, open));
}

interface AccuracyOptions extends OutputOptions {
  readonly since?: PastTime;
  /** The value of `--server`. */
  readonly server?: string;
}

async function showAccuracy(open: OpenModels, model: string, options: AccuracyOptions): Promise<void> {
  const { server, json } = options;
  await using operator = await open(options);
  const since = await options.since?.(operator);
  const accuracy = await operator.call(readAccuracy, { model, since, server });
  if (json) return printJson(accuracy);
  if (accuracy.series.length === 0) return remark(`Nothing that "${model}" predicted was reported in this time`);
  const rows = accuracy.series.flatMap(({ podType, server: address, target, points }) =>
    points.map(({ startMs, version, rows: times, mape, mdape, bias, p90Coverage }) => [
      new Date(startMs).toISOString().slice(0, 16).concat('Z'),
      address ?? (podType === '' ? 'aggregate' : podType),
      target.toUpperCase(),
      version === undefined ? undefined : nameVersion(model, version),
      times,
      ...[mape, mdape, bias, p90Coverage].map((value) => value.toFixed(1)),
    ]),
  );
  const part = server === undefined ? 'pod type' : 'server';
  print(
    formatTable(['from', part, 'target', 'version', 'times', 'MAPE %', 'MdAPE %', 'bias %', 'p90 coverage %'], rows),
  );
}

function nameVersion(model: string, version: number): string {
  return version === 0 ? 'prior' : formatModelId(model, version);
}
