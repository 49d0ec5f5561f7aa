/**
 * Measures what calls of 10,000 rows in llm-d's interface cost a gRPC caller: the real program, and a caller that asks for 16 rows
 * every few milliseconds, alone and then beside one connection of another process that sends large calls without pause.
 * The longest event loop turn is the time in which the program answered no caller. Its processor time leaves out the time that
 * other programs took.
 * `node bench/llm-d/large.ts [--seconds 10] [--note-bytes 200] [--json]`.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Program, startProgram } from '../../test/support/programs/start-program.ts';
import { connectGoodClient, type Experience } from '../abuse/good-client.ts';
import { readBenchFlags } from '../support/bench-flags.ts';
import { createRows } from './rows.ts';

const { values: flags, positionals } = readBenchFlags({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '10' },
    'note-bytes': { type: 'string', default: '200' },
    json: { type: 'boolean', default: false },
  },
});
const ROWS = 10_000;
const PATHS = ['predict/bulk/strict', 'add_training_data_bulk'];

interface Reading extends Experience {
  readonly run: string;
  readonly turn: LongestTurn;
}

interface LongestTurn {
  readonly clockMs: number;
  readonly cpuMs: number;
}

async function main(): Promise<void> {
  const preloaded = new URL('./longest-turn.ts', import.meta.url);
  const environment = { LOG_LEVEL: 'error', PREDICTION_LEARNING: 'false', NODE_OPTIONS: `--import=${preloaded.href}` };
  await using program = await startProgram(environment);
  using client = connectGoodClient(program, undefined);
  const measure = async (run: string): Promise<Reading> => {
    await readLongestTurn(program);
    const experience = await client.measure(1000 * Number(flags.seconds));
    return { run, ...experience, turn: await readLongestTurn(program) };
  };
  await measure('warm-up');
  const readings = [await measure('alone')];
  for (const path of PATHS) {
    const caller = startCaller(`${program.httpUrl}/llm-d/m/${path}`);
    readings.push(await measure(`beside ${path}`));
    if (caller.exitCode !== null) throw new Error(`The caller of ${path} ended early`);
    caller.kill();
  }
  process.stdout.write(flags.json ? `${JSON.stringify(readings)}\n` : render(readings));
}

/** Reads the longest turn since the last reading. */
async function readLongestTurn({ pid, log }: Program): Promise<LongestTurn> {
  const known = log().length;
  process.kill(pid, 'SIGUSR2');
  for (;;) {
    const found = /longest turn ([\d.]+) ms, ([\d.]+) ms of processor\n/.exec(log().slice(known));
    if (found !== null) return { clockMs: Number(found[1]), cpuMs: Number(found[2]) };
    await sleep(10);
  }
}

function startCaller(url: string): ChildProcess {
  const options = ['--note-bytes', flags['note-bytes']];
  return fork(import.meta.filename, [url, ...options], { stdio: 'inherit' });
}

/** Sends one large call after the other until the process is killed. */
async function keepCalling(url: string): Promise<never> {
  const note = 'x'.repeat(Number(flags['note-bytes']));
  const rows = createRows(ROWS, 1).map((row) => ({ ...row, actual_ttft_ms: 120, actual_tpot_ms: 9, note }));
  const body = JSON.stringify(url.endsWith('strict') ? { requests: rows } : { entries: rows });
  for (;;) {
    const response = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`);
  }
}

function render(readings: readonly Reading[]): string {
  const lines = readings.map(
    ({ run, calls, failures, p50Ms, p99Ms, turn }) =>
      `| ${run} | ${calls} | ${failures} | ${p50Ms.toFixed(1)} | ${p99Ms.toFixed(1)} | ${turn.clockMs.toFixed(1)} | ${turn.cpuMs.toFixed(1)} |`,
  );
  const head = [
    '| run | calls | failures | p50 ms | p99 ms | longest turn ms | by processor ms |',
    '|---|---|---|---|---|---|---|',
  ];
  return [...head, ...lines, ''].join('\n');
}

await (positionals[0] === undefined ? main() : keepCalling(positionals[0]));
