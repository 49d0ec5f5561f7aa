import { existsSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { type LoadConnection, openConnection } from './grpc-load.ts';
import type { Measured } from './load-patterns.ts';
import { createRequests } from './messages.ts';
import type { ServerProcess } from './server-process.ts';

const CONNECTIONS = 4;

export interface Row extends Measured {
  readonly candidates: number;
  readonly pattern: string;
  /** Requests whose dispatch, first token and end were reported and stored meanwhile. */
  readonly reportsPerSecond?: number;
  /** Processor time of the server per call: unlike the rate, other programs hardly change it. */
  readonly cpuMicrosPerCall: number;
  /** Share of one core that the server used. */
  readonly coreShare: number;
  readonly longestTurnMs: number;
  /** Share of the time in which the answering thread was ready to run, but other threads had its core. */
  readonly waitedShare: number;
  /** Share of both cores that the hypervisor gave to other systems; 0 where the kernel does not report it. */
  readonly stolenShare: number;
  /** Share of the time in which the server waited for the garbage collector. */
  readonly collectedShare: number;
  readonly longestCollectionMs: number;
  /** Share of the time in which it was busy, or would have been. */
  readonly loopShare: number;
  /** The result of the turns in which other programs took the least of the machine. */
  readonly quiet?: { readonly p99Ms: number; readonly stolenShare: number };
}

export function connectLoad(server: ServerProcess, candidates: number): Promise<LoadConnection[]> {
  const [message = Buffer.alloc(0), ...others] = createRequests(candidates);
  const target = {
    host: '127.0.0.1',
    port: server.port,
    path: '/prediction.v1.PredictionService/Predict',
    message,
    others,
  };
  return Promise.all(Array.from({ length: CONNECTIONS }, () => openConnection(target)));
}

/** Runs a pattern of load, and adds the server's own readings of that time. */
export async function measureRow(
  server: ServerProcess,
  what: { readonly candidates: number; readonly pattern: string },
  run: () => Promise<Measured>,
): Promise<Row> {
  await server.begin();
  const stolenMs = readStolenMs();
  const measured = await run();
  const readings = await server.end();
  const elapsedMs = 1000 * measured.elapsedSeconds;
  return {
    ...what,
    ...measured,
    cpuMicrosPerCall: readings.cpuMicros / (measured.callsPerSecond * measured.elapsedSeconds),
    coreShare: readings.cpuMicros / (1000 * elapsedMs),
    longestTurnMs: readings.longestTurnMs,
    waitedShare: readings.waitedMs / elapsedMs,
    stolenShare: (readStolenMs() - stolenMs) / (elapsedMs * cpus().length),
    collectedShare: readings.collectedMs / elapsedMs,
    longestCollectionMs: readings.longestCollectionMs,
    loopShare: readings.loopShare,
  };
}

/** Times of all cores, in ticks of 10 ms: user, nice, system, idle, iowait, irq, softirq, steal. */
const CORES = '/proc/stat';

function readStolenMs(): number {
  if (!existsSync(CORES)) return 0;
  return 10 * Number(readFileSync(CORES, 'utf8').split(/\s+/, 9)[8]);
}
