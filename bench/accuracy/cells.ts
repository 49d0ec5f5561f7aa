/** The cells of the table: a recording, a protocol, and how latencies are reported. */
import type { Protocol } from '../../src/prediction/evaluation/protocols.ts';
import type { Reporting } from '../../src/prediction/evaluation/report-times.ts';
import { type Log, POOLS, simulateHerd, simulateLevels, simulatePool } from './logs.ts';

export type BenchProtocol = Extract<Protocol, 'random' | 'time' | 'prequential' | 'leave-run-out'>;

export interface Cell {
  readonly name: string;
  readonly log: Log;
  readonly protocol: BenchProtocol;
  readonly reporting?: Reporting;
  /** Evaluates only rows that were asked in this window, in milliseconds from the first row, including those before the first refit. */
  readonly windowMs?: readonly [from: number, until: number];
}

const REPORTINGS: readonly [name: string, reporting: Reporting | undefined][] = [
  ['', undefined],
  [', reports 2 s late', { delayMs: 2000, batchMs: 0, lostShare: 0 }],
  [', reports every 5 s', { delayMs: 0, batchMs: 5000, lostShare: 0 }],
  [', a fifth of reports lost', { delayMs: 0, batchMs: 0, lostShare: 0.2 }],
];
const FIRST_MS = 4000;

export function listFileCells(log: Log, protocols: readonly BenchProtocol[]): Cell[] {
  return protocols.map((protocol) => ({ name: `${log.name}, ${protocol}`, log, protocol }));
}

export function listPoolCells(moreSeed: number, folder: string): Cell[] {
  const pools = POOLS.flatMap((pool): Cell[] => {
    const log = simulatePool(pool, moreSeed, folder);
    const reported = REPORTINGS.map(
      ([name, reporting]): Cell => ({
        name: `${log.name}, time${name}`,
        log,
        protocol: 'time',
        ...(reporting !== undefined && { reporting }),
      }),
    );
    return [...reported, ...listFileCells(log, ['prequential'])];
  });
  return [
    ...pools,
    ...listFileCells(simulateLevels(moreSeed, folder), ['leave-run-out']),
    ...listHerdCells(moreSeed, folder),
  ];
}

function listHerdCells(moreSeed: number, folder: string): Cell[] {
  const log = simulateHerd(moreSeed, folder);
  const windows = { 'first 4 s': [0, FIRST_MS], 'after 4 s': [FIRST_MS, Number.POSITIVE_INFINITY] } as const;
  return Object.entries(windows).map(([when, windowMs]) => ({
    name: `${log.name}, ${when}`,
    log,
    protocol: 'prequential',
    windowMs,
  }));
}
