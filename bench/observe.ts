/**
 * Reports many observations to the real program, and prints how many a second it acknowledges, its memory over time, and
 * how many samples it keeps. `node bench/observe.ts [--observations 1000000] [--models 1] [--servers 64]
 * [--learning true] [--json]`
 */
import { readFileSync, statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { startProgram } from '../test/support/programs/start-program.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags } = readBenchFlags({
  options: {
    observations: { type: 'string', default: '1000000' },
    models: { type: 'string', default: '1' },
    servers: { type: 'string', default: '64' },
    learning: { type: 'string', default: 'true' },
    json: { type: 'boolean', default: false },
  },
});
const OBSERVATIONS = Number(flags.observations);
const EVENTS_A_CALL = 2000;
const CALLS_AT_ONCE = 2;
const PRINTED_LINES = 20;

interface Reading {
  readonly seconds: number;
  readonly acknowledged: number;
  readonly rssMiB: number;
  /** Memory of the training process. */
  readonly learningMiB: number;
  readonly samples: number;
  readonly databaseMiB: number;
}

async function main(): Promise<void> {
  await using program = await startProgram({ LOG_LEVEL: 'warn', PREDICTION_LEARNING: flags.learning });
  const { httpUrl, pid, dataDir } = program;
  print(await reportAll(httpUrl, () => readState(pid, dataDir)));
}

async function reportAll(url: string, readNow: () => Omit<Reading, 'seconds' | 'acknowledged'>): Promise<Reading[]> {
  const readings: Reading[] = [];
  const startedMs = performance.now();
  let sent = 0;
  let acknowledged = 0;
  const read = (): void => {
    const seconds = (performance.now() - startedMs) / 1000;
    const reading = { seconds, acknowledged, ...readNow() };
    readings.push(reading);
    process.stderr.write(
      `${acknowledged} acknowledged after ${seconds.toFixed(0)} s, ${reading.rssMiB.toFixed(0)} MiB\n`,
    );
  };
  const report = async (): Promise<void> => {
    while (sent < OBSERVATIONS) {
      const first = sent;
      sent += EVENTS_A_CALL;
      const lines = Array.from({ length: EVENTS_A_CALL }, (_, i) => createLine(first + i));
      const response = await fetch(`${url}/observation.v1.ObservationService/ReportBatch`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/jsonl' },
        body: lines.join('\n'),
      });
      const answer = (await response.json()) as { accepted: number | string };
      if (!response.ok) throw new Error(JSON.stringify(answer));
      const before = acknowledged;
      acknowledged += Number(answer.accepted);
      const every = OBSERVATIONS / PRINTED_LINES;
      if (Math.floor(acknowledged / every) > Math.floor(before / every)) read();
    }
  };
  read();
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, report));
  // Waits for thinning, training and saving in the background.
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  read();
  return readings;
}

function createLine(index: number): string {
  const mix = Math.imul(index + 1, 0x9e3779b1) >>> 0;
  const running = mix % 40;
  const length = 50 + ((mix >>> 8) % 8000);
  const input = {
    inputTokenLength: length,
    numRequestRunning: running,
    numRequestWaiting: running > 30 ? mix % 20 : 0,
    kvCacheUsage: running / 45,
    prefixCacheScore: ((mix >>> 16) % 100) / 100,
    serverIp: `10.0.${(mix >>> 4) % Number(flags.servers)}.1`,
  };
  const observation = {
    requestId: `r${index}`,
    targetModel: `m${index % Number(flags.models)}`,
    input,
    ttftMillis: 30 + length * 0.1 * (1 - input.prefixCacheScore) + running * 3 + input.numRequestWaiting * 90,
    tpotMillis: 8 + running * 0.5,
    outputTokens: 100,
  };
  return JSON.stringify({ observation });
}

function readState(pid: number, dataDir: string): Omit<Reading, 'seconds' | 'acknowledged'> {
  const file = join(dataDir, 'trivet.db');
  const database = new DatabaseSync(file, { readOnly: true });
  const samples = Number(database.prepare('SELECT COUNT(*) AS count FROM samples').get()?.count);
  database.close();
  const learning = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const learningMiB = learning.reduce((sum, child) => sum + readRssMiB(child), 0);
  return { rssMiB: readRssMiB(pid), learningMiB, samples, databaseMiB: statSync(file).size / 2 ** 20 };
}

function readRssMiB(pid: number | string): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

function print(readings: readonly Reading[]): void {
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ date: new Date().toISOString(), ...flags, readings })}\n`);
    return;
  }
  process.stdout.write(`${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}\n\n`);
  process.stdout.write('  seconds  acknowledged  a second   RSS MiB  learning MiB  samples kept  database MiB\n');
  for (const { seconds, acknowledged, rssMiB, learningMiB, samples, databaseMiB } of readings)
    process.stdout.write(
      [
        seconds.toFixed(0).padStart(9),
        String(acknowledged).padStart(14),
        (acknowledged / Math.max(1, seconds)).toFixed(0).padStart(10),
        rssMiB.toFixed(0).padStart(10),
        learningMiB.toFixed(0).padStart(14),
        String(samples).padStart(14),
        `${databaseMiB.toFixed(0).padStart(14)}\n`,
      ].join(''),
    );
}

await main();
