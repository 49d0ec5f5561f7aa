/**
 * Measures how accurate predictions over llm-d's interface get on a recording of its training rows (JSON lines, in order of time):
 * `node bench/llm-d/trace.ts FILE [--rows-a-call 10] [--json]`.
 *
 * The bench uses only this interface of the real program. Each row is predicted before it is reported, with the rows of its
 * call, as medians. The program trains in the background; a recording replayed in seconds leaves it no time, so the replay
 * waits for a training after every 500 rows. Errors are the mean of |predicted - observed| / observed, in percent.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startProgram } from '../../test/support/programs/start-program.ts';
import { readBenchFlags } from '../support/bench-flags.ts';

const { values: flags, positionals } = readBenchFlags({
  allowPositionals: true,
  options: { 'rows-a-call': { type: 'string', default: '10' }, json: { type: 'boolean', default: false } },
});

type Entry = Readonly<Record<string, number>> & { readonly actual_ttft_ms: number; readonly actual_tpot_ms: number };
type Time = 'ttft_ms' | 'tpot_ms';

const ROWS_A_TRAINING = 500;
const url = (httpUrl: string) => `${httpUrl}/llm-d/trace`;

async function main(): Promise<void> {
  const entries = readEntries(positionals[0] ?? '');
  const errors: Record<Time, number[]> = { ttft_ms: [], tpot_ms: [] };
  await using program = await startProgram({
    LLM_D_QUANTILE: '0.5',
    LOG_LEVEL: 'warn',
    PREDICTION_REFIT_ROWS: String(ROWS_A_TRAINING / 2),
  });
  const size = Number(flags['rows-a-call']);
  let trainings = 0;
  for (let start = 0, nextWait = ROWS_A_TRAINING; start < entries.length; start += size) {
    const rows = entries.slice(start, start + size);
    const predictions = await predict(program.httpUrl, rows);
    for (const [i, row] of rows.entries())
      for (const time of ['ttft_ms', 'tpot_ms'] as const) {
        const observedMs = row[`actual_${time}`];
        if (observedMs > 0) errors[time].push((100 * Math.abs(predictions[i]![time] - observedMs)) / observedMs);
      }
    await post(`${url(program.httpUrl)}/add_training_data_bulk`, { entries: rows }, 202);
    if (start + size < nextWait) continue;
    nextWait += ROWS_A_TRAINING;
    trainings = await waitForTraining(program.httpUrl, trainings);
  }
  const report = { rows: entries.length, trainings, ttft: summarise(errors.ttft_ms), tpot: summarise(errors.tpot_ms) };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : render(report));
}

function readEntries(file: string): Entry[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Entry);
}

async function predict(httpUrl: string, requests: readonly Entry[]): Promise<readonly Record<Time, number>[]> {
  const answer = await post(`${url(httpUrl)}/predict/bulk/strict`, { requests }, 200);
  return (answer as { predictions: Record<Time, number>[] }).predictions;
}

async function post(address: string, body: object, status: number): Promise<unknown> {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${address} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

async function waitForTraining(httpUrl: string, before: number): Promise<number> {
  for (;;) {
    const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
    const counts = [...metrics.matchAll(/^trivet_prediction_trainings_total\{.*\} (\d+)$/gm)];
    const trainings = counts.reduce((sum, [, count]) => sum + Number(count), 0);
    if (trainings > before) return trainings;
    await sleep(100);
  }
}

interface Summary {
  readonly rows: number;
  readonly mape: number;
  readonly mapeOfLastThird: number;
}

function summarise(errors: readonly number[]): Summary {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    rows: errors.length,
    mape: mean(errors),
    mapeOfLastThird: mean(errors.slice(-Math.ceil(errors.length / 3))),
  };
}

function render({
  rows,
  trainings,
  ttft,
  tpot,
}: Record<'rows' | 'trainings', number> & Record<'ttft' | 'tpot', Summary>): string {
  const line = (name: string, { rows: count, mape, mapeOfLastThird }: Summary) =>
    `| ${name} | ${count} | ${mape.toFixed(1)} | ${mapeOfLastThird.toFixed(1)} |`;
  return [
    `${rows} rows, ${trainings} trainings`,
    '| time | rows | MAPE | of the last third |',
    '|---|---|---|---|',
    line('TTFT', ttft),
    line('TPOT', tpot),
    '',
  ].join('\n');
}

await main();
